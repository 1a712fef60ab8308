// SPDX-License-Identifier: Apache-2.0
// Usage: go_client BASE TARGETS-AS-JSON
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strings"
)

func send(request *http.Request, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "not sent:", err)
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no response:", err)
		return
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
}

func main() {
	base := os.Args[1]
	targets := map[string]string{}
	if err := json.Unmarshal([]byte(os.Args[2]), &targets); err != nil {
		panic(err)
	}
	names := []string{}
	for name := range targets {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		send(http.NewRequest("GET", base+"/"+name+targets[name], nil))
	}
	send(http.NewRequest("POST", base+"/form", strings.NewReader(url.Values{"a": {"b c", "d|e"}}.Encode())))
	send(http.NewRequest("DELETE", base+"/delete", nil))
	send(http.NewRequest("HEAD", base+"/head", nil))
	send(http.NewRequest("POST", base+"/chunked", io.MultiReader(strings.NewReader("one"), strings.NewReader("two"))))
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	writer.SetBoundary("boundary-of-a-fixed-length")
	part, _ := writer.CreateFormFile("f", "näme \"x\".txt")
	part.Write([]byte("a\r\n--b"))
	writer.Close()
	request, err := http.NewRequest("POST", base+"/multipart", &form)
	request.Header.Set("Content-Type", writer.FormDataContentType())
	send(request, err)
	request, err = http.NewRequest("POST", base+"/trailers", io.MultiReader(strings.NewReader("body")))
	request.Trailer = http.Header{"X-Checksum": {"abc"}, "Grpc-Status": {"0"}}
	send(request, err)
	request, err = http.NewRequest("POST", base+"/expect", strings.NewReader("body"))
	request.Header.Set("Expect", "100-continue")
	send(request, err)
	request, err = http.NewRequest("GET", base+"/utf8-header", nil)
	request.Header.Set("X-Name", "café")
	request.Header["X-Repeated"] = []string{"a", "b"}
	send(request, err)
	request, err = http.NewRequest("GET", base+"/raw-path", nil)
	request.URL.Opaque = "//" + request.URL.Host + "/raw-path/a%2Fb"
	send(request, err)
	request, err = http.NewRequest("PROPFIND", base+"/propfind", strings.NewReader("<x/>"))
	send(request, err)
	request, err = http.NewRequest("PUT", base+"/gzip", bytes.NewReader([]byte{0x1f, 0x8b, 8, 0, 0, 13, 10, 0}))
	request.Header.Set("Content-Encoding", "gzip")
	send(request, err)
}

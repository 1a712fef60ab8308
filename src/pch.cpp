// SPDX-License-Identifier: Apache-2.0
// Nothing: what is compiled once for all is named in CMakeLists.txt.

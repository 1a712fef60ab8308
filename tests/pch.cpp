// SPDX-License-Identifier: Apache-2.0
// There for the headers that CMakeLists.txt compiles with it.
int main() {}

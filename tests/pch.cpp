// SPDX-License-Identifier: Apache-2.0
// Exists only so that CMakeLists.txt can precompile headers with it.
int main() {}

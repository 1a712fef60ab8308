// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>

#include "config_reference/reference.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "Usage: config_reference FOLDER\n"
                 "Writes config.schema.json and the tables of configuration.md in FOLDER.\n";
    return 2;
  }
  try {
    const std::string folder = std::string(argv[1]) + "/";
    std::ostringstream page;
    page << std::ifstream(folder + "configuration.md").rdbuf();
    const std::string with_tables = tidegate::WithConfigTables(page.str());
    std::ofstream(folder + "configuration.md") << with_tables;
    std::ofstream(folder + "config.schema.json") << tidegate::ConfigSchema();
  } catch (const std::exception& error) {
    std::cerr << "config_reference: " << error.what() << "\n";
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "metrics/dashboard.hpp"

#include <boost/json.hpp>
#include <set>

namespace tidegate::metrics_test {
namespace {

namespace json = boost::json;

void Replace(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

std::string Chosen(std::string expression) {
  Replace(expression, "$__rate_interval", "10s");
  for (const std::string_view name : {"$job", "$instance", "$rule"}) {
    Replace(expression, name, ".*");
  }
  return expression;
}

std::string Text(const json::value& value) { return std::string(value.as_string()); }

}  // namespace

Dashboard Dashboard::Read(std::string_view text) {
  Dashboard read;
  const json::object root = json::parse(text).as_object();
  std::set<std::int64_t> ids;
  for (const json::value& panel : root.at("panels").as_array()) {
    const std::string title = Text(panel.at("title"));
    if (!ids.insert(panel.at("id").as_int64()).second) {
      read.problems.push_back(title + ": its id is another's");
    }
    if (Text(panel.at("type")) == "row") continue;
    if (Text(panel.at("datasource").at("uid")) != "${datasource}") {
      read.problems.push_back(title + ": its data source is not the chosen one");
    }
    const auto& targets = panel.at("targets").as_array();
    if (targets.empty()) read.problems.push_back(title + ": it asks for nothing");
    for (const json::value& target : targets) {
      read.targets.push_back({title, Chosen(Text(target.at("expr")))});
      if (read.targets.back().expression.find('$') != std::string::npos) {
        read.problems.push_back(title + ": a variable that is not there");
      }
    }
  }
  for (const json::value& variable : root.at("templating").at("list").as_array()) {
    if (Text(variable.at("type")) != "query") continue;
    // The query has the form label_values(SELECTOR, LABEL).
    const std::string query = Chosen(Text(variable.at("query").at("query")));
    const std::size_t begin = query.find('(') + 1;
    const std::size_t comma = query.rfind(", ");
    read.variables.push_back({Text(variable.at("name")), query.substr(begin, comma - begin),
                              query.substr(comma + 2, query.size() - comma - 3)});
  }
  return read;
}

}  // namespace tidegate::metrics_test

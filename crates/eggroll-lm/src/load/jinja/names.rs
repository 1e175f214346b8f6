//! Names of Jinja's filters and tests.

const OF_VALUES: [&str; 30] = [
    "abs",
    "attr",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "e",
    "escape",
    "float",
    "forceescape",
    "format",
    "indent",
    "int",
    "items",
    "length",
    "list",
    "lower",
    "replace",
    "reverse",
    "round",
    "safe",
    "string",
    "title",
    "tojson",
    "trim",
    "truncate",
    "upper",
    "urlencode",
    "wordcount",
];
pub(super) const OF_LISTS: [&str; 17] = [
    "batch",
    "dictsort",
    "first",
    "groupby",
    "join",
    "last",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
];
/// Filters of Jinja that chat templates do not need.
pub(super) const REFUSED: [&str; 7] =
    ["filesizeformat", "pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"];

/// Whether Jinja has a filter.
pub(super) fn is_filter(name: &str) -> bool {
    OF_VALUES.contains(&name) || OF_LISTS.contains(&name) || REFUSED.contains(&name)
}

const TESTS: [&str; 39] = [
    "odd",
    "even",
    "divisibleby",
    "defined",
    "undefined",
    "filter",
    "test",
    "none",
    "boolean",
    "false",
    "true",
    "integer",
    "float",
    "lower",
    "upper",
    "string",
    "mapping",
    "number",
    "sequence",
    "iterable",
    "callable",
    "sameas",
    "escaped",
    "in",
    "==",
    "eq",
    "equalto",
    "!=",
    "ne",
    ">",
    "gt",
    "greaterthan",
    "ge",
    ">=",
    "<",
    "lt",
    "lessthan",
    "<=",
    "le",
];

/// Whether Jinja has a test.
pub(super) fn is_test(name: &str) -> bool {
    TESTS.contains(&name)
}

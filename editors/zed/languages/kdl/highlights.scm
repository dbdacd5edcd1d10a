(string) @string
(escape) @string.escape
(escaped_whitespace) @string.escape

(number) @number
(keyword) @constant.builtin
(boolean) @boolean

(node name: (identifier) @keyword)
(prop key: (identifier) @property)
(type) @type

"=" @operator
["{" "}" "(" ")"] @punctuation.bracket
";" @punctuation.delimiter

[(single_line_comment) (multi_line_comment)] @comment

; What `/-` takes out.
(node (node_comment)) @comment
(node_field (node_field_comment)) @comment
(node_children_comment) @comment

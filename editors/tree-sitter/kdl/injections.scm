; extends

; Texts of a spec are Markdown: prompts, what agents are told, what people are asked.
((node
  name: (identifier) @_name
  (node_field
    argument: (value
      value: (string
        (string_fragment) @injection.content))))
  (#any-of? @_name "prompt" "prefix" "suffix" "system" "message" "goal" "description")
  (#set! injection.language "markdown"))

((node
  name: (identifier) @_name
  (node_field
    argument: (value
      value: (string
        (multi_line_string
          (string_fragment) @injection.content)))))
  (#any-of? @_name "prompt" "prefix" "suffix" "system" "message" "goal" "description")
  (#set! injection.language "markdown"))

; Expressions are minijinja's.
((node
  name: (identifier) @_name
  (node_field
    argument: (value
      value: (string
        (string_fragment) @injection.content))))
  (#any-of? @_name "until" "when" "for-each")
  (#set! injection.language "jinja_inline"))

; So is the logic in any text of a spec.
((string_fragment) @injection.content
  (#match? @injection.content "\\{[{%]")
  (#set! injection.language "jinja"))

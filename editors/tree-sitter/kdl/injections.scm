; extends

; `{{ … }}` and `{% … %}` in any text of a spec.
((string_fragment) @injection.content
  (#match? @injection.content "\\{[{%]")
  (#set! injection.language "jinja"))

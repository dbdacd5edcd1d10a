; `task plan { … }`: what has a name and a block. The outer node is a `node`, but tree-sitter does not come to an end with a
; query that says so.
(_
  (identifier) @context
  .
  (node_field argument: (value value: (string) @name))
  (node_children)) @item

//! What lowering makes of a whole spec, and what it says of types, values and names that do not fit.

//! Directives, their older notation, and what only looks like one.

use super::*;

#[test]
fn directives_have_a_kind_a_name_fields_and_filters() {
    check_parts("a <<output:plan>> b", r#""a " <output plan> " b""#);
    check_parts("<<output:unit-tests.score.min | tail:50>>", "<output unit-tests.score.min | tail 50>");
    check_parts("<<output:x|raw|json>>", "<output x | raw | json>");
    check_parts("<<input:report | head:3 | chars:80>>", "<input report | head 3 | chars 80>");
    check_parts("<<param:goal | default:none>>", r#"<param goal | default "none">"#);
    check_parts(r#"<<param:g | default: "a \"b\" >> | c">>!"#, r#"<param g | default "a \"b\" >> | c"> "!""#);
    check_parts("<<file:docs/a b.md | lines:1-40>>", "<file docs/a b.md | lines 1 40>");
    check_parts("<<include: roles/coder.v2.md>>", "<include roles/coder.v2.md>");
    check_parts("<<iteration>><<stdin | tail:2>>", "<iteration> <stdin | tail 2>");
    check_parts("<<run:id>> <<run:dir>> <<task:name>>", r#"<run id> " " <run dir> " " <task name>"#);
    check_parts("<<status:x>><<exit:x | default:1>><<error:x>>", r#"<status x> <exit x | default "1"> <error x>"#);
    check_parts("<<<output:x>>>", r#""<" <output x> ">""#);
    check_parts("é<<output:x>>é", r#""é" <output x> "é""#);
}

#[test]
fn items_have_fields_and_no_name() {
    check_parts("<<item>> <<index>> <<item.a-b.c | json>>", r#"<item> " " <index> " " <item.a-b.c | json>"#);
    check_parts(
        "<<context:impl>> <<inbox>> <<shared:api>> <<team>> <<plan>>",
        r#"<context impl> " " <inbox> " " <shared api> " " <team> " " <plan>"#,
    );
    check_reads("<<item.title>>", "item.title");
    check_problems("<<item:title>>", &["SW208 at \":\": `item` takes no name -> <<item.title>>"]);
    check_problems("<<index:x>>", &["SW208 at \":x\": `index` takes no name -> <<index>>"]);
    check_problems("<<shared>>", &["SW208 at \"shared\": `shared` needs the name of a topic"]);
    check_problems("<<item. >>", &["SW208 at \"\": a field is missing after `.`"]);
}

#[test]
fn directives_with_spaces_are_text_and_reported() {
    for text in ["<< output:x >>", "<<output :x>>", "<< output: x>>"] {
        let report = format!("SW213 at {text:?}: this is no directive, and stays as it is -> <<output:x>>");
        check_problems(text, &[&report]);
    }
}

#[test]
fn every_other_pair_of_angles_is_text() {
    for text in [
        "cat <<EOF\nhello\nEOF",
        "cat <<-EOF",
        "cat <<'EOF' >> log",
        "cat <<EOF | sort >> log",
        "cat <<EOF | head -5 >> log",
        "cat <<EOF >> log",
        "1 << 2",
        "a<<b",
        "x <<y.z >> 3",
        "1<<n.bits >> 2",
        "std::cout <<std::endl; x >> y;",
        "std::cerr <<error.what();",
        "cout <<status.code | x",
        "cat <<<word.x>>file",
        "<<<<<<< HEAD",
        "a << output >> x: y",
        "a << output::x >>",
        "<<",
        "<<>>",
        "<<1>>",
        "List<<T>>::new",
    ] {
        match text {
            // The rule is a word and `>>`: this one has to be escaped.
            "List<<T>>::new" => check_problems(text, &["SW208 at \"T\": unknown directive `T`"]),
            _ => check_parts(text, &format!("{text:?}")),
        }
        assert!(text.contains("<T>") || scan(text).problems.is_empty(), "problems of {text:?}");
    }
}

#[test]
fn a_backslash_makes_text_of_a_directive() {
    check_parts(r"a \<<output:x>>", r#""a " \ "<<output:x>>""#);
    check_parts(r"\\<<output:x>>", r#""\\" \ "<<output:x>>""#);
    check_parts(r"\<<EOF", r#"\ "<<EOF""#);
    check_parts(r"<<output:x>>\<<output:y>>", r#"<output x> \ "<<output:y>>""#);
    check_reads(r"\<<output:x>>", "");
}

#[test]
fn unknown_directives_are_told_apart_from_text() {
    check_problems("see <<outptu:plan>>", &["SW208 at \"outptu\": unknown directive `outptu` -> see <<output:plan>>"]);
    check_problems("<<outptu | tail:5>>", &["SW208 at \"outptu\": unknown directive `outptu` -> <<output | tail:5>>"]);
    check_problems("<<Output:x>>", &["SW208 at \"Output\": unknown directive `Output` -> <<output:x>>"]);
    check_problems("<<entry.name>>", &["SW208 at \"entry\": unknown directive `entry`"]);
    check_problems("<<whatever>>", &["SW208 at \"whatever\": unknown directive `whatever`"]);
}

#[test]
fn directives_that_do_not_fit_the_notation_are_reported() {
    check_problems("<<output:x\n>>", &["SW208 at \"<<output:x\": `<<output:x` is not closed -> <<output:x>>\n>>"]);
    check_problems(
        "<<output:a and <<output:b>>",
        &["SW208 at \"<<output:a\": `<<output:a` is not closed -> <<output:a>> and <<output:b>>"],
    );
    check_problems(
        "<<output:a.b | tail:3\nx",
        &["SW208 at \"<<output:a.b | tail:3\": `<<output:a.b | tail:3` is not closed -> <<output:a.b | tail:3>>\nx"],
    );
    check_problems("see <<output:a.", &["SW208 at \"<<output:a\": `<<output:a` is not closed -> see <<output:a>>."]);
    check_problems(
        "<<previous:a-b.c | default:output.y>>",
        &[
            "SW208 at \"default:output.y\": the default is the text `output.y` -> {{ previous.a_b.c | default(output.y) }}",
        ],
    );
    check_problems(
        "<<output:x | default:<<param:y>>>>",
        &[
            "SW208 at \"<<output:x | default:\": `<<output:x | default:` is not closed -> {{ output.x | default(param.y) }}",
        ],
    );
    check_parts("<<param:x | default:v1.2>>", r#"<param x | default "v1.2">"#);
    check_problems("<<output>>", &["SW208 at \"output\": `output` needs the name of a step"]);
    check_problems("<<output:>>", &["SW208 at \"output\": `output` needs the name of a step"]);
    check_problems("<<output.x>>", &["SW208 at \"output\": `output` needs the name of a step -> <<output:x>>"]);
    check_problems("<<param>>", &["SW208 at \"param\": `param` needs the name of a parameter"]);
    check_problems("<<iteration:x>>", &["SW208 at \":x\": `iteration` takes no name -> <<iteration>>"]);
    check_problems("<<run:time>>", &["SW208 at \"time\": `run` has no `time`"]);
    check_problems("<<task:id>>", &["SW208 at \"id\": `task` has no `id`"]);
    check_problems("<<run>>", &["SW208 at \"run\": `run` needs a property"]);
    check_problems("<<include>>", &["SW208 at \"include\": `include` needs the path of a file"]);
    check_problems("<<file: >>", &["SW208 at \"file\": `file` needs the path of a file"]);
    check_problems("<<status:x.code>>", &["SW208 at \".code\": `status` has no fields -> <<status:x>>"]);
    check_problems("<<output:a b>>", &["SW208 at \"a b\": `a b` is not a name"]);
    check_problems("<<output:a.>>", &["SW208 at \"\": a field is missing after `.`"]);
}

#[test]
fn one_bracket_does_not_close_a_directive() {
    for (inside, rest) in [
        ("output:a", ""),
        ("output:a", " and 1 >> 2"),
        ("output:a.b", ", then go on"),
        ("output:a | tail:3", "\n>>"),
        ("item", ""),
        ("item", " and <<index>>"),
        ("item.id", ""),
        ("item.id", " of <<item.name>>"),
        ("item | json", ""),
        ("inbox", "."),
        ("param:goal", "s"),
    ] {
        let text = format!("see <<{inside}>{rest}");
        let found = format!("SW208 at \"<<{inside}>\": `<<{inside}>` is closed by one `>` -> see <<{inside}>>{rest}");
        check_problems(&text, &[&found]);
    }
    for text in [
        "cat <<plan>out.md",
        "cat <<item >out",
        "cp <<file> <<dir>",
        "std::cerr <<error.text;",
        "<<<item>",
        "\\<<item>",
    ] {
        assert!(scan(text).problems.is_empty(), "problems of {text:?}");
    }
}

#[test]
fn filters_that_do_not_fit_are_reported() {
    check_problems("<<output:x | tial:3>>", &["SW208 at \"tial\": unknown filter `tial` -> <<output:x | tail:3>>"]);
    check_problems("<<output:x | upper>>", &["SW208 at \"upper\": unknown filter `upper`"]);
    check_problems("<<output:x | >>", &["SW208 at \"|\": a filter is missing after `|`"]);
    for argument in ["", ":", ":x", ":0", ":-1", ":1.5", ":99999999999999999999"] {
        let filter = format!("tail{argument}");
        let found = format!("SW208 at {filter:?}: `tail` needs a number of lines, from 1");
        check_problems(&format!("<<output:x | {filter}>>"), &[&found]);
    }
    check_problems(
        "<<output:x | lines:9-3>>",
        &["SW208 at \"lines:9-3\": `lines` needs two line numbers, the first from 1 -> <<output:x | lines:3-9>>"],
    );
    check_problems("<<output:x | json:1>>", &["SW208 at \"json:1\": `json` takes no argument"]);
    check_problems("<<output:x | default>>", &["SW208 at \"default\": `default` needs a text"]);
    check_problems("<<output:x | default:a b>>", &["SW208 at \"default:a b\": `default` needs a text"]);
    check_problems("<<iteration | tail:3>>", &["SW208 at \"tail\": `tail` makes no sense on `iteration`"]);
    check_problems("<<include:a | raw>>", &["SW208 at \"raw\": `raw` makes no sense on `include`"]);
}

#[test]
fn the_older_notation_works_and_is_rewritten() {
    check_parts("{{output:plan}} {{ input: x }}", r#"<output plan> " " <input x>"#);
    check_parts("{{include: a/b.md}}", "<include a/b.md>");
    check_parts("{{{output:x}}}", r#""{" <output x> "}""#);
    let older = "this is the older notation of a directive";
    check_problems("a {{output: x}}", &[&format!("SW213 at \"{{{{output: x}}}}\": {older} -> a <<output:x>>")]);
    check_problems("{{output:}}", &["SW208 at \"output\": `output` needs the name of a step"]);
    assert_eq!(reads(&scan("{{output:x}}").reads), "output.x");
}

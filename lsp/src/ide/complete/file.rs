//! Paths: folder by folder, what lies there.

use super::super::cursor::Entry;
use super::{Ask, Item, ItemKind, value};

/// What a path of the spec could go on with.
pub(super) fn list_paths(ask: &Ask<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let typed = &ask.text()[entry.range.start..ask.offset];
    let (is_import, only_folders) =
        (entry.node.is_named("import"), entry.node.is_named("working-dir") || entry.node.is_named("docs-root"));
    let mut items = Vec::new();
    if is_import && !typed.contains('/') {
        items.extend(swarmc_compiler::library_parts().map(|(name, _)| {
            let item = Item::new(name, ItemKind::File).detail("library");
            value::quote_value(ask, entry, item)
        }));
    }
    let folder = parent_folder(ask.path);
    for item in list_folder(ask, &folder, typed) {
        let wanted = match item.kind {
            ItemKind::Folder => true,
            _ if only_folders => false,
            _ if is_import => item.label.ends_with(".kdl"),
            _ => !item.label.ends_with(".kdl") || entry.node.is_named("docs") || entry.node.is_named("baseline"),
        };
        if wanted {
            items.push(quote_path(ask, entry, item));
        }
    }
    items
}

/// What a pattern of paths could begin with; these are relative to the workspace.
pub(super) fn list_globs(ask: &Ask<'_>, entry: &Entry<'_>) -> Vec<Item> {
    let typed = &ask.text()[entry.range.start..ask.offset];
    list_folder(ask, "", typed).into_iter().map(|item| quote_path(ask, entry, item)).collect()
}

/// What a path in a directive could go on with; relative to the file that says it.
pub(super) fn in_directive(ask: &Ask<'_>, typed: &str) -> Vec<Item> {
    list_folder(ask, &parent_folder(ask.path), typed)
}

fn parent_folder(path: &str) -> String {
    path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned())
}

/// What lies in the folder of what was typed.
fn list_folder(ask: &Ask<'_>, home: &str, typed: &str) -> Vec<Item> {
    let (folder, begun) = typed.rsplit_once('/').unwrap_or(("", typed));
    let Some(folder) = swarmc_compiler::join_path(home, folder) else { return Vec::new() };
    let own = |name: &str| folder.is_empty() && ask.path == name || format!("{folder}/{name}") == ask.path;
    let names = ask.snapshot.files().list(&folder);
    // What would have to be escaped cannot be a path of the language either.
    let names = names.into_iter().filter(|name| !name.contains(['"', '\\', '\n']));
    // What is hidden is for those who ask.
    let names = names.filter(|name| (!name.starts_with('.') || begun.starts_with('.')) && !own(name));
    let (folders, files): (Vec<String>, Vec<String>) = names.partition(|name| name.ends_with('/'));
    let texts = |name: &String| !(name.ends_with(".md") || name.ends_with(".txt"));
    let mut files = files;
    files.sort_by_key(texts);
    let files = files.into_iter().map(|name| Item::new(name, ItemKind::File));
    files.chain(folders.into_iter().map(|name| Item::new(name, ItemKind::Folder).suggest_next())).collect()
}

/// The item as it is written: in quotes, which a folder leaves open.
fn quote_path(ask: &Ask<'_>, entry: &Entry<'_>, mut item: Item) -> Item {
    if item.kind == ItemKind::Folder {
        if entry.quote.is_none() {
            item.snippet = Some(format!("\"{}$0\"", item.text.replace('$', "\\$").replace('}', "\\}")));
            item.text = format!("\"{}\"", item.text);
        }
        return item;
    }
    if entry.quote.is_none() {
        item.text = format!("\"{}\"", item.text);
        return item;
    }
    value::quote_value(ask, entry, item)
}

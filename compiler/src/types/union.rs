//! Values that may be one of several kinds, and lists whose items are known one by one.
//!
//! In: the types that meet in a place. Out: one type, which says what every one of them may be. How large and how deep it
//! becomes is bounded: what would be larger is any, which says less and is never wrong.

use std::sync::Arc;

use super::{Kind, Lack, Type, Types};

/// The kinds of one union.
const MOST_KINDS: usize = 8;

/// The types that a computed type is made of.
pub(super) const LARGEST: usize = 64;

/// How deep a computed type nests.
pub(super) const DEEPEST: usize = 32;

/// Kinds of which a value has one: two or more, none of them a union or any.
#[derive(Debug, PartialEq)]
pub(crate) struct Union {
    pub(crate) kinds: Vec<Kind>,
    depth: usize,
    size: usize,
}

/// A list whose items are known one by one.
#[derive(Debug, PartialEq)]
pub(crate) struct Tuple {
    pub(crate) items: Vec<Type>,
    pub(crate) form: Form,
    depth: usize,
    size: usize,
}

/// What a [`Tuple`] is at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A list.
    List,
    /// A pair of `items`, or the like: it is added to its like only.
    Tuple,
    /// A group of `groupby`, whose items have the names `grouper` and `list`.
    Group,
}

/// What a value can be used for, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes(u16);

impl Classes {
    pub(crate) const TEXT: Classes = Classes(1);
    pub(crate) const INT: Classes = Classes(2);
    pub(crate) const FLOAT: Classes = Classes(4);
    pub(crate) const BOOL: Classes = Classes(8);
    pub(crate) const LIST: Classes = Classes(16);
    /// An [`Kind::Iter`] whose length is known.
    pub(crate) const ITER: Classes = Classes(32);
    /// One whose length is not.
    pub(crate) const STREAM: Classes = Classes(64);
    pub(crate) const OBJECT: Classes = Classes(128);
    pub(crate) const NONE: Classes = Classes(256);
    pub(crate) const ALL: Classes = Classes(511);
    pub(crate) const NUMBER: Classes = Classes::INT.union(Classes::FLOAT);
    pub(crate) const SEQUENCE: Classes = Classes::LIST.union(Classes::ITER).union(Classes::STREAM);
    /// What `for` can go through.
    pub(crate) const ITERABLE: Classes =
        Classes::SEQUENCE.union(Classes::TEXT).union(Classes::OBJECT).union(Classes::NONE);

    pub(crate) const fn union(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    pub(crate) const fn intersection(self, other: Classes) -> Classes {
        Classes(self.0 & other.0)
    }

    pub(crate) const fn complement(self) -> Classes {
        Classes(Classes::ALL.0 & !self.0)
    }

    pub(crate) const fn has(self, other: Classes) -> bool {
        self.0 & other.0 != 0
    }
}

impl Tuple {
    /// The type of each item.
    pub(crate) fn item(&self) -> Type {
        self.items.iter().cloned().reduce(Type::or).unwrap_or(Type::ANY)
    }
}

impl Kind {
    /// What a value of this kind can be used for; none where nothing is known. A union is asked for each of its kinds.
    pub(crate) fn class(&self) -> Option<Classes> {
        Some(match self {
            Kind::Any | Kind::Union(_) | Kind::Named(..) => return None,
            Kind::None => Classes::NONE,
            Kind::Text | Kind::String | Kind::File | Kind::Dir | Kind::Enum(_) => Classes::TEXT,
            Kind::Int => Classes::INT,
            Kind::Float => Classes::FLOAT,
            Kind::Bool => Classes::BOOL,
            Kind::List(_) | Kind::Tuple(_) => Classes::LIST,
            Kind::Iter { sized: true, .. } => Classes::ITER,
            Kind::Iter { sized: false, .. } => Classes::STREAM,
            Kind::Map(_) | Kind::Record(_) => Classes::OBJECT,
        })
    }

    /// The type of an item, where it is a list of whatever form.
    pub(crate) fn item_type(&self) -> Option<Type> {
        match self {
            Kind::List(item) | Kind::Iter { item, .. } => Some((**item).clone()),
            Kind::Tuple(tuple) => Some(tuple.item()),
            _ => None,
        }
    }
}

impl Type {
    /// How deep it nests, declared types not counted.
    pub(crate) fn depth(&self) -> usize {
        match &self.kind {
            Kind::List(item) | Kind::Map(item) | Kind::Iter { item, .. } => 1 + item.depth(),
            Kind::Record(record) => record.depth,
            Kind::Tuple(tuple) => tuple.depth,
            Kind::Union(union) => union.depth,
            _ => 0,
        }
    }

    /// How many types it is made of, declared types not counted.
    pub(super) fn size(&self) -> usize {
        match &self.kind {
            Kind::List(item) | Kind::Map(item) | Kind::Iter { item, .. } => item.size().saturating_add(1),
            Kind::Record(record) => record.size,
            Kind::Tuple(tuple) => tuple.size,
            Kind::Union(union) => union.size,
            _ => 1,
        }
    }

    /// The same, or any where it nests so deeply that nothing may be made of it.
    pub(crate) fn limit_depth(self) -> Type {
        if self.depth() >= DEEPEST { Type { kind: Kind::Any, lack: self.lack } } else { self }
    }

    /// A list of which each item is known.
    pub(crate) fn tuple(items: Vec<Type>, form: Form) -> Type {
        let size = items.iter().fold(1, |size: usize, item| size.saturating_add(item.size()));
        let depth = 1 + items.iter().map(Type::depth).max().unwrap_or(0);
        if size > LARGEST || depth > DEEPEST {
            // It is too large: one type stands for all its items.
            return Type::list(items.into_iter().reduce(Type::or).unwrap_or(Type::ANY));
        }
        Type::new(Kind::Tuple(Arc::new(Tuple { items, form, depth, size })))
    }

    /// What slices and some filters give instead of a list.
    pub(crate) fn iter(item: Type, sized: bool) -> Type {
        Type::new(Kind::Iter { item: Arc::new(item.limit_depth()), sized })
    }

    /// Texts to values.
    pub(crate) fn map(item: Type) -> Type {
        Type::new(Kind::Map(Arc::new(item.limit_depth())))
    }

    /// The type of a value that is one or the other.
    pub(crate) fn or(self, other: Type) -> Type {
        let mut lack = self.lack.union(other.lack);
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in [self.kind, other.kind] {
            match kind {
                Kind::Union(union) => union.kinds.iter().for_each(|kind| add_kind(&mut kinds, kind.clone())),
                kind => add_kind(&mut kinds, kind),
            }
        }
        // Beside other kinds, `null` is a lack, which a guard can take away.
        if kinds.len() > 1 && kinds.contains(&Kind::None) {
            kinds.retain(|kind| *kind != Kind::None);
            lack = lack.union(Lack::NULL);
        }
        Type { kind: unite_kinds(kinds), lack }
    }

    /// The same where it is there, though it may be `null`.
    pub(crate) fn into_present(self) -> Type {
        let lack = self.lack.without(Lack::ABSENT.union(Lack::SILENT));
        self.with_lack(lack)
    }

    /// The same, of which only `null` is left as what may stand in the place of a value.
    pub(crate) fn only_null(self) -> Type {
        let lack = if self.lack.has(Lack::NULL) { Lack::NULL } else { Lack::NEVER };
        self.with_lack(lack)
    }

    /// The type of what is left of it once it is written as JSON and read again.
    pub(crate) fn into_stored(self) -> Type {
        let stored = |kind: Kind| match kind {
            Kind::Iter { item, .. } => Kind::List(item),
            // A list as any other, whose items are still known one by one.
            Kind::Tuple(tuple) => {
                Type::tuple(tuple.items.iter().cloned().map(Type::into_stored).collect(), Form::List).kind
            }
            kind => kind,
        };
        let kind = match self.kind {
            Kind::Union(union) => {
                let mut kinds = Vec::new();
                union.kinds.iter().for_each(|kind| add_kind(&mut kinds, stored(kind.clone())));
                unite_kinds(kinds)
            }
            kind => stored(kind),
        };
        Type { kind, lack: self.lack }
    }
}

impl Types {
    /// The kinds that a value may have, declared types looked up.
    pub(crate) fn possible_kinds(&self, kind: &Kind) -> Vec<Kind> {
        match self.underlying_kind(kind) {
            Kind::Union(union) => union.kinds.iter().map(|kind| self.underlying_kind(kind).clone()).collect(),
            kind => vec![kind.clone()],
        }
    }
}

/// The kind of a value that has one of these.
pub(crate) fn unite_kinds(kinds: Vec<Kind>) -> Kind {
    let types = || kinds.iter().map(|kind| Type::new(kind.clone()));
    let size = types().fold(1, |size: usize, kind| size.saturating_add(kind.size()));
    let depth = types().map(|kind| kind.depth()).max().unwrap_or(0);
    match kinds.as_slice() {
        // Of a value without a kind nothing is known, and any is never wrong.
        [] => Kind::Any,
        [kind] => kind.clone(),
        kinds if kinds.contains(&Kind::Any) || kinds.len() > MOST_KINDS || size > LARGEST || depth > DEEPEST => {
            Kind::Any
        }
        _ => Kind::Union(Arc::new(Union { kinds, depth, size })),
    }
}

/// Adds a kind to those of a union.
fn add_kind(kinds: &mut Vec<Kind>, kind: Kind) {
    for known in kinds.iter_mut() {
        if let Some(merged) = merge_kinds(known, &kind) {
            *known = merged;
            return;
        }
    }
    kinds.push(kind);
}

/// The kind of values of both kinds, where one says as much as the two.
fn merge_kinds(one: &Kind, other: &Kind) -> Option<Kind> {
    let list = |one: Type, other: &Type| Type::list(one.or(other.clone())).kind;
    Some(match (one, other) {
        (one, other) if one == other => one.clone(),
        (Kind::Int, Kind::Float) | (Kind::Float, Kind::Int) => Kind::Float,
        (one, other) if one.is_text() && other.is_text() => Kind::String,
        (Kind::List(one), Kind::List(other)) => list((**one).clone(), other),
        // The other forms can be added to their like only, so they are no lists.
        (Kind::Tuple(tuple), Kind::List(item)) | (Kind::List(item), Kind::Tuple(tuple)) if tuple.form == Form::List => {
            let item = tuple.items.iter().fold((**item).clone(), |kind, item| kind.or(item.clone()));
            Type::list(item).kind
        }
        (Kind::Tuple(one), Kind::Tuple(other)) if one.form == other.form && one.items.len() == other.items.len() => {
            let items = one.items.iter().zip(&other.items).map(|(one, other)| one.clone().or(other.clone()));
            Type::tuple(items.collect(), one.form).kind
        }
        (Kind::Tuple(one), Kind::Tuple(other)) if (one.form, other.form) == (Form::List, Form::List) => {
            let item = one.items.iter().chain(&other.items).cloned().reduce(Type::or);
            Type::list(item.unwrap_or(Type::ANY)).kind
        }
        (Kind::Map(one), Kind::Map(other)) => Type::map((**one).clone().or((**other).clone())).kind,
        (Kind::Iter { item: one, sized }, Kind::Iter { item: other, sized: both }) => {
            Type::iter((**one).clone().or((**other).clone()), *sized && *both).kind
        }
        _ => return None,
    })
}

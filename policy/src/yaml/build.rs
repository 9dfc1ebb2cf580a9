//! Parser events become a tree, within limits.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Seen;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::extent::{Extent, mark};
use super::problem::{Problem, Problems};
use super::scalar;
use super::value::{Entry, Layout, Map, Mark, Node, Style, Value};

/// The longest text that is read.
pub const MAX_BYTES: usize = 16 << 20;
/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;
/// The most values that one text may hold, aliases expanded.
pub const MAX_NODES: usize = 2_000_000;
/// Below a value whose path is longer than this, values share its path: memory stays in proportion to the text.
const MAX_PATH_BYTES: usize = 256;

/// Reads all documents of a YAML text.
///
/// Keys must be unique, anchors may not blow up the text, merge keys and tags other than `!!str` are refused.
///
/// # Errors
/// All problems that were found; a syntax error ends the reading.
pub fn load(file: &str, text: &str) -> Result<Vec<Value>, Vec<Problem>> {
    let problems = Problems::new(file);
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes; at most {MAX_BYTES} are read", text.len());
        problems.add(Mark::default(), "", message, None);
        return Err(problems.into_vec());
    }
    let mut builder = Builder::new(&problems);
    for event in Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        match event {
            Ok((event, span)) => {
                if builder.take(event, Extent::of(&span)).is_err() {
                    break;
                }
            }
            Err(error) => {
                let at = error.marker();
                problems.add(mark(at), "", format!("not valid YAML: {}", error.info()), None);
                break;
            }
        }
    }
    let documents = builder.documents;
    problems.into_result(Some(documents))
}

/// The reading cannot go on; the problem was reported.
struct Stopped;

enum Content {
    Seq(Vec<Value>),
    Map {
        map: Map,
        key: Option<(String, Mark)>,
        /// The keys so far, each with its line.
        lines: HashMap<String, u32>,
    },
}

struct Open {
    content: Content,
    mark: Mark,
    layout: Layout,
    path: Arc<str>,
    anchor: usize,
    size: usize,
}

/// How many values a finished one holds, and how many of them were not counted before.
struct Size {
    total: usize,
    new: usize,
}

struct Anchored {
    value: Value,
    size: usize,
}

struct Builder<'p> {
    problems: &'p Problems,
    documents: Vec<Value>,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
}

impl<'p> Builder<'p> {
    fn new(problems: &'p Problems) -> Self {
        Self {
            problems,
            documents: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
        }
    }

    fn take(&mut self, event: Event<'_>, extent: Extent) -> Result<(), Stopped> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), extent)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), extent.start);
                self.start(Content::Seq(Vec::new()), anchor, tag.is_some(), extent)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), extent.start);
                self.start(
                    Content::Map {
                        map: Map::default(),
                        key: None,
                        lines: HashMap::new(),
                    },
                    anchor,
                    tag.is_some(),
                    extent,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(extent.end),
            Event::Alias(id) => self.alias(id, extent),
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        extent: Extent,
    ) -> Result<(), Stopped> {
        let mark = extent.start;
        if self.wants_key() {
            return self.key(text.to_owned(), mark);
        }
        let text_tag = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        if !text_tag {
            self.refuse_tag(tag, mark);
        }
        let path = self.next_path();
        let node = if text_tag || style != ScalarStyle::Plain {
            Node::String(text.to_owned())
        } else {
            scalar::resolve(text).unwrap_or_else(|message| {
                let hint = "write it without the leading 0, or in quotes".to_owned();
                self.problems.add(mark, &path, message, Some(hint));
                Node::Null
            })
        };
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Lines,
        };
        let layout = Layout {
            end: extent.end,
            style,
            is_decorated: anchor != 0 || tag.is_some(),
        };
        let value = Value {
            node,
            mark,
            layout,
            path,
        };
        self.place(value, anchor, Size { total: 1, new: 1 })
    }

    /// Whether the next event is a key of an open mapping.
    fn wants_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(Open {
                content: Content::Map { key: None, .. },
                ..
            })
        )
    }

    fn key(&mut self, text: String, mark: Mark) -> Result<(), Stopped> {
        let Some(Open {
            content: Content::Map { key, lines, .. },
            path,
            ..
        }) = self.open.last_mut()
        else {
            return Ok(());
        };
        match lines.entry(text.clone()) {
            Seen::Vacant(place) => {
                place.insert(mark.line);
            }
            Seen::Occupied(first) => {
                let message = format!("key \"{text}\" is given twice");
                let hint = format!("the first one is on line {}", first.get());
                self.problems.add(mark, path, message, Some(hint));
            }
        }
        if text == "<<" {
            let hint = "write the keys out".to_owned();
            self.problems
                .add(mark, path, "merge keys are not supported".to_owned(), Some(hint));
        }
        *key = Some((text, mark));
        Ok(())
    }

    fn start(
        &mut self,
        content: Content,
        anchor: usize,
        is_tagged: bool,
        extent: Extent,
    ) -> Result<(), Stopped> {
        let mark = extent.start;
        if self.wants_key() {
            self.problems
                .add(mark, "", "a key must be a string".to_owned(), None);
            return Err(Stopped);
        }
        if self.open.len() >= MAX_DEPTH {
            self.problems
                .add(mark, "", format!("nested deeper than {MAX_DEPTH} levels"), None);
            return Err(Stopped);
        }
        let path = self.next_path();
        self.open.push(Open {
            content,
            mark,
            layout: extent.collection(anchor != 0 || is_tagged),
            path,
            anchor,
            size: 1,
        });
        Ok(())
    }

    fn end(&mut self, end: Mark) -> Result<(), Stopped> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let node = match open.content {
            Content::Seq(elements) => Node::Seq(elements),
            Content::Map { map, .. } => Node::Map(map),
        };
        let size = Size {
            total: open.size,
            new: 1,
        };
        self.place(
            Value {
                node,
                mark: open.mark,
                layout: Layout { end, ..open.layout },
                path: open.path,
            },
            open.anchor,
            size,
        )
    }

    fn alias(&mut self, id: usize, extent: Extent) -> Result<(), Stopped> {
        let mark = extent.start;
        if self.wants_key() {
            self.problems
                .add(mark, "", "a key must be a string, not an alias".to_owned(), None);
            return Err(Stopped);
        }
        let Some(Anchored { value, size }) = self.anchors.get(&id) else {
            self.problems.add(
                mark,
                "",
                "the alias names an anchor that contains it".to_owned(),
                None,
            );
            return Err(Stopped);
        };
        let (size, node) = (*size, self.fits(*size).then(|| value.node.clone()));
        let Some(node) = node else {
            return self.too_many(mark);
        };
        let path = self.next_path();
        let layout = Layout {
            end: extent.end,
            style: Style::Alias,
            is_decorated: true,
        };
        self.place(
            Value {
                node,
                mark,
                layout,
                path,
            },
            0,
            Size {
                total: size,
                new: size,
            },
        )
    }

    fn fits(&self, size: usize) -> bool {
        self.nodes.saturating_add(size) <= MAX_NODES
    }

    fn too_many(&self, mark: Mark) -> Result<(), Stopped> {
        self.problems.add(
            mark,
            "",
            format!("more than {MAX_NODES} values, aliases expanded"),
            None,
        );
        Err(Stopped)
    }

    /// Puts a finished value where it belongs.
    fn place(&mut self, value: Value, anchor: usize, size: Size) -> Result<(), Stopped> {
        let kept = if anchor == 0 { 0 } else { size.total };
        if !self.fits(size.new + kept) {
            return self.too_many(value.mark);
        }
        self.nodes += size.new + kept;
        if anchor != 0 {
            self.anchors.insert(
                anchor,
                Anchored {
                    value: value.clone(),
                    size: size.total,
                },
            );
        }
        let Some(parent) = self.open.last_mut() else {
            self.documents.push(value);
            return Ok(());
        };
        parent.size = parent.size.saturating_add(size.total);
        match &mut parent.content {
            Content::Seq(elements) => elements.push(value),
            Content::Map { map, key, .. } => {
                if let Some((key, mark)) = key.take() {
                    map.entries.push(Entry { key, mark, value });
                }
            }
        }
        Ok(())
    }

    /// The path of the value that comes next.
    fn next_path(&self) -> Arc<str> {
        let Some(parent) = self.open.last() else {
            return Arc::from("");
        };
        if parent.path.len() > MAX_PATH_BYTES {
            return parent.path.clone();
        }
        match &parent.content {
            Content::Seq(elements) => Arc::from(format!("{}[{}]", parent.path, elements.len())),
            Content::Map { key, .. } => {
                let key = key.as_ref().map_or("", |(key, _)| key.as_str());
                if parent.path.is_empty() {
                    Arc::from(key)
                } else {
                    Arc::from(format!("{}.{key}", parent.path))
                }
            }
        }
    }

    fn refuse_tag(&self, tag: Option<&Tag>, mark: Mark) {
        if let Some(tag) = tag {
            let message = format!("the tag {}{} is not supported", tag.handle, tag.suffix);
            self.problems.add(mark, "", message, None);
        }
    }
}

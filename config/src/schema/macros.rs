//! The macros that tables are written in.

/// Declares a section: a struct, its reader and its description.
///
/// ```text
/// section! {
///     /// What the section is about.
///     Name as "a name in messages" {
///         /// What the key means.
///         key: Type as Reader = "default",
///     }
///     planned { "key_of_a_later_version" }
///     check function_over_the_whole
/// }
/// ```
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident as $called:literal {
            $(
                $(#[doc = $key_about:literal])+
                $key:ident : $type:ty $(as $reader:ty)? $(= $default:literal)? ,
            )+
        }
        $(planned { $($planned:literal),+ $(,)? })?
        $(check $check:path)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $key_about])+ pub $key: $type, )+
        }

        impl $crate::schema::Setting for $name {
            type Value = Self;

            fn kind() -> $crate::schema::Kind {
                $crate::schema::Kind::Section($crate::schema::Description {
                    about: concat!($($about),+),
                    keys: vec![$(
                        $crate::schema::Keys::describe::<section!(@reader $type $(, $reader)?)>(
                            stringify!($key), concat!($($key_about),+), section!(@default $($default)?),
                        )
                    ),+],
                    planned: &[$($($planned),+)?],
                })
            }

            fn read(
                value: &policy::yaml::Value,
                reading: &$crate::schema::Reading<'_>,
            ) -> Option<Self> {
                Self::read_keys(Some(value), reading)
            }

            fn from_text(_: &str) -> Result<Self, String> {
                Err("expected a mapping".to_owned())
            }

            fn absent(reading: &$crate::schema::Reading<'_>) -> Option<Self> {
                Self::read_keys(None, reading)
            }
        }

        impl $name {
            /// The keys whose values are not the same in both.
            #[allow(dead_code, reason = "only some sections are compared key by key")]
            pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $( if self.$key != other.$key { keys.push(stringify!($key)); } )+
                keys
            }

            fn read_keys(
                value: Option<&policy::yaml::Value>,
                reading: &$crate::schema::Reading<'_>,
            ) -> Option<Self> {
                let keys = $crate::schema::Keys::open(value, $called, reading)?;
                keys.refuse_unknown(&[$(stringify!($key)),+], &[$($($planned),+)?]);
                // Every key is read before the first missing one ends the reading.
                $( let $key = keys.read::<section!(@reader $type $(, $reader)?)>(
                    stringify!($key), section!(@default $($default)?),
                ); )+
                let section = Self { $($key: $key?),+ };
                $( $check(&section, &keys); )?
                Some(section)
            }
        }
    };
    (@reader $type:ty) => { $type };
    (@reader $type:ty, $reader:ty) => { $reader };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
}

/// Declares a value that is one of a few words.
///
/// ```text
/// choice! {
///     /// What is chosen.
///     Name {
///         /// What it means.
///         Variant = "word",
///     }
///     planned { "word_of_a_later_version" }
/// }
/// ```
macro_rules! choice {
    (
        $(#[doc = $about:literal])+
        $name:ident { $( $(#[doc = $variant_about:literal])+ $variant:ident = $word:literal ),+ $(,)? }
        $(planned { $($planned:literal),+ $(,)? })?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $variant_about])+ $variant ),+ }

        impl $name {
            /// The word in the configuration.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word ),+ }
            }
        }

        impl $crate::schema::Leaf for $name {
            type Value = Self;
            const WRITING: $crate::schema::Writing = $crate::schema::Writing::Word;

            fn phrase() -> String {
                [$( concat!("`", $word, "`") ),+].join(" or ")
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "oneOf": [
                    $({ "const": $word, "description": concat!($($variant_about),+).trim() }),+
                ] })
            }

            fn parse(text: &str, _: &std::path::Path) -> Result<Self, String> {
                match text {
                    $( $word => Ok(Self::$variant), )+
                    $( $( $planned => Err(concat!($planned, " is not available in this version").to_owned()), )+ )?
                    _ => {
                        let hint = policy::nearest::hint(text, [$($word),+]);
                        Err(format!("{text:?} is unknown; {}", hint.unwrap_or_default()))
                    }
                }
            }
        }
    };
}

pub(crate) use {choice, section};

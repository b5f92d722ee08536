//! [`section!`] declares a section of the settings file `crawlgate.yaml`. The declaration has the
//! type, the default and the decoder of each field in one place.

/// Declares the struct of a section, each field as `key => field: type = default, decoder;`. Its
/// `decode` reads the fields of a map. Missing and wrong ones have their defaults.
macro_rules! section {
    (
        $(#[$attribute:meta])*
        $section:ident {
            $(
                $(#[$documentation:meta])*
                $key:literal => $field:ident: $type:ty = $default:expr, $decoder:expr;
            )*
        }
    ) => {
        $(#[$attribute])*
        pub struct $section {
            $(
                $(#[$documentation])*
                pub $field: $type,
            )*
        }

        impl Default for $section {
            fn default() -> $section {
                $section { $($field: $default,)* }
            }
        }

        impl $section {
            pub(super) fn decode(fields: &mut $crate::yaml::MapFields<'_>) -> $section {
                let mut section = $section::default();
                $(fields.get_into($key, &mut section.$field, $decoder);)*
                section
            }
        }
    };
}

pub(super) use section;

//! Enumerations whose values have names.

/// Declares an enumeration without fields, whose type is `Copy`, with a name for each value. The type gets `ALL`, an array of its values in
/// the order of their declaration, and `name`, which returns the name of a value.
///
/// ```
/// baton_named::named! {
///     /// A direction.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Direction {
///         /// From host memory to the NIC.
///         ToNic => "to the NIC",
///         /// From the NIC to host memory.
///         ToHost => "to the host",
///     }
/// }
///
/// assert_eq!(Direction::ALL, [Direction::ToNic, Direction::ToHost]);
/// assert_eq!(Direction::ToHost.name(), "to the host");
/// ```
#[macro_export]
macro_rules! named {
    (
        $(#[$of_type:meta])*
        $visible:vis enum $Type:ident {
            $($(#[$of_value:meta])* $Value:ident $(= $number:literal)? => $name:literal),+ $(,)?
        }
    ) => {
        $(#[$of_type])*
        $visible enum $Type {
            $($(#[$of_value])* $Value $(= $number)?),+
        }

        #[allow(dead_code, reason = "some types need only one of both")]
        impl $Type {
            /// All values, in the order of their declaration.
            $visible const ALL: [Self; [$($name),+].len()] = [$(Self::$Value),+];

            /// Returns the name of the value.
            $visible const fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name),+
                }
            }
        }
    };
}

//! Numbers with units, as in `1 GHz` for a key in MHz.

/// Units of the same quantity, each with its size.
const FAMILIES: [&[(&str, f64)]; 5] = [
    &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)],
    &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
    &[("bit/s", 1.0), ("kb/s", 1e3), ("Mb/s", 1e6), ("Gb/s", 1e9)],
    &[
        ("bytes", 1.0),
        ("B", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
    ],
    &[("MIPS", 1.0), ("GIPS", 1e3)],
];

/// Converts a number with a unit to a number in `unit`, as TOML. Returns `None` if the text is not a number with a unit of the same quantity.
pub fn converted(text: &str, unit: &str) -> Option<String> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic() && letter != 'e')?;
    let (number, given) = text.split_at(end);
    let number: f64 = number.trim().parse().ok()?;
    let size = |family: &[(&str, f64)], wanted: &str| {
        let mut units = family.iter();
        units
            .find(|(name, _)| *name == wanted)
            .map(|(_, size)| *size)
    };
    let mut sizes = FAMILIES.iter().filter_map(|family| {
        let sizes = size(family, given)? / size(family, unit)?;
        Some(sizes)
    });
    let value = number * sizes.next()?;
    let rounded = value.round();
    Some(match (value - rounded).abs() <= 1e-9 * value.abs() {
        true => format!("{rounded:.0}"),
        false => format!("{value:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_the_same_quantity_are_converted() {
        for (text, unit, number) in [
            ("1 GHz", "MHz", "1000"),
            ("2.5GHz", "MHz", "2500"),
            ("8 MiB", "KiB", "8192"),
            ("10 ms", "us", "10000"),
            ("1.5 us", "ms", "0.0015"),
            ("1e3 kb/s", "Mb/s", "1"),
            ("0.6 GIPS", "MIPS", "600"),
        ] {
            assert_eq!(converted(text, unit).as_deref(), Some(number), "{text}");
        }
        for (text, unit) in [
            ("1 GHz", "MIPS"),
            ("GHz", "MHz"),
            ("1 parsec", "ms"),
            ("7", "ms"),
        ] {
            assert_eq!(converted(text, unit), None, "{text}");
        }
    }
}

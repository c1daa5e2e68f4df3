//! Errors for impossible hardware. Each names the field and the expected values.

use baton_sim::hardware::{
    CacheConfig, DmaPolicy, DramConfig, MemoryConfig, MemoryHierarchy, NicProcessor,
    NicProcessorConfig, Processor, ProcessorConfig, TlbConfig, Wire, WireConfig,
};

fn l2(size_kib: u32, ways: u32, line_bytes: u32) -> String {
    let l2 = CacheConfig {
        size_kib,
        ways,
        line_bytes,
        latency_cycles: 15,
    };
    MemoryConfig {
        l2,
        ..MemoryConfig::default()
    }
    .validate()
    .unwrap_err()
    .to_string()
}

fn dram(dram: DramConfig) -> String {
    MemoryConfig {
        dram,
        ..MemoryConfig::default()
    }
    .validate()
    .unwrap_err()
    .to_string()
}

#[test]
fn the_geometry_of_the_paper_is_valid() {
    let config = MemoryConfig::default();
    config.validate().unwrap();
    assert_eq!((config.l1.sets(), config.l2.sets()), (Ok(512), Ok(1_024)));
    MemoryHierarchy::new(&config).unwrap();
}

#[test]
fn impossible_geometry_names_the_field() {
    assert_eq!(l2(0, 16, 64), "l2.size_kib = 0: expected 1 to 1048576");
    assert_eq!(l2(1024, 0, 64), "l2.ways = 0: expected 1 to 64");
    assert_eq!(l2(1024, 65, 64), "l2.ways = 65: expected 1 to 64");
    assert_eq!(
        l2(1024, 16, 48),
        "l2.line_bytes = 48: expected a power of two"
    );
    assert_eq!(
        l2(1024, 16, 128),
        "l2.line_bytes = 128: expected l1.line_bytes = 64: one line size for both levels"
    );
    assert_eq!(
        l2(1000, 16, 64),
        "l2.size_kib = 1000: expected ways x line_bytes = 1024 bytes times a power of two \
         (the number of sets; this makes 1000.00)"
    );
    assert_eq!(
        l2(1, 32, 64),
        "l2.size_kib = 1: expected ways x line_bytes = 2048 bytes times a power of two \
         (the number of sets; this makes 0.50)"
    );
}

#[test]
fn impossible_memory_names_the_field() {
    assert_eq!(
        dram(DramConfig {
            banks: 3,
            ..DramConfig::default()
        }),
        "dram.banks = 3: expected a power of two"
    );
    assert_eq!(
        dram(DramConfig {
            banks: 0,
            ..DramConfig::default()
        }),
        "dram.banks = 0: expected 1 to 1024"
    );
    assert_eq!(
        dram(DramConfig {
            open_page_latency_cycles: 200,
            ..DramConfig::default()
        }),
        "dram.open_page_latency_cycles = 200: expected 1 to latency_cycles = 195"
    );
}

#[test]
fn impossible_rates_and_probabilities_name_the_field() {
    let config = ProcessorConfig {
        clock_mhz: 0,
        ..ProcessorConfig::default()
    };
    assert_eq!(
        Processor::new(&config).unwrap_err().to_string(),
        "clock_mhz = 0: expected 1 to 100000"
    );
    let error = NicProcessor::new(&NicProcessorConfig { mips: 0 })
        .unwrap_err()
        .within("nic");
    assert_eq!(error.to_string(), "nic.mips = 0: expected 1 to 1000000");
    for loss in [-0.1, 1.5, f64::NAN] {
        let error = Wire::<u32>::new(
            &WireConfig {
                loss,
                ..WireConfig::default()
            },
            0,
        )
        .unwrap_err();
        assert_eq!(
            (error.field.as_str(), error.expected.as_str()),
            ("loss", "a probability, 0 to 1")
        );
    }
}

#[test]
fn configurations_read_from_toml() {
    let text = "
        dma = 'inject'
        [l2]
        size_kib = 2048
        ways = 8
        line_bytes = 64
        latency_cycles = 20
        [dram]
        banks = 8
    ";
    let config: MemoryConfig = toml::from_str(text).unwrap();
    assert_eq!(
        (config.l2.sets(), config.dma, config.dram.banks),
        (Ok(4_096), DmaPolicy::Inject, 8)
    );
    assert_eq!(config.l1, MemoryConfig::default().l1);
    for (text, expected) in [
        ("l3 = 1", "unknown field `l3`"),
        ("dram.banks = -4", "invalid value"),
    ] {
        let error = toml::from_str::<MemoryConfig>(text)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(
        toml::from_str::<WireConfig>("loss = 0.01").unwrap().loss,
        0.01
    );
    assert_eq!(
        toml::from_str::<ProcessorConfig>("clock_mhz = 3000")
            .unwrap()
            .instructions_per_cycle,
        1
    );
}

#[test]
fn impossible_translation_names_the_field() {
    let error = |tlb: TlbConfig| {
        let config = MemoryConfig {
            tlb,
            ..MemoryConfig::default()
        };
        config.validate().unwrap_err().to_string()
    };
    let opteron = TlbConfig {
        entries: 32,
        ..TlbConfig::default()
    };
    assert_eq!(
        error(TlbConfig {
            entries: 33,
            ..opteron.clone()
        }),
        "tlb.entries = 33: expected ways = 32 times a power of two, the number of sets"
    );
    assert_eq!(
        error(TlbConfig {
            second_ways: 65,
            ..opteron.clone()
        }),
        "tlb.second_ways = 65: expected 1 to 64"
    );
    assert_eq!(
        error(TlbConfig {
            second_latency_cycles: 0,
            ..opteron
        }),
        "tlb.second_latency_cycles = 0: expected 1 to 10000"
    );
}

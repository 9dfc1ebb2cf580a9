//! Compiles the wire contract with a protobuf compiler written in Rust, so that no `protoc` is needed.

const SERVICES: [&str; 6] = [
    "toolgate/v1/enrolment.proto",
    "toolgate/v1/snapshots.proto",
    "toolgate/v1/reports.proto",
    "toolgate/v1/catalogue.proto",
    "toolgate/v1/approvals.proto",
    "toolgate/v1/quotas.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=toolgate");
    let files = protox::compile(SERVICES, ["."])?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}

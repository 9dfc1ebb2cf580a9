//! Compiles the wire contract with a protobuf compiler written in Rust, so that no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=toolgate");
    let files = protox::compile(["toolgate/v1/enrolment.proto"], ["."])?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}

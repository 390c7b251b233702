//! ApiVersions: what is served (KIP-35, KIP-511).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};

use freshet_wire::protocol::versions::ADVERTISED;

/// Answers a request of a version that is served.
pub fn handle(api_version: i16, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    let named = api_version < 3
        || (is_software_name(&request.client_software_name)
            && is_software_name(&request.client_software_version));
    if named { response(None) } else { refusal(ResponseError::InvalidRequest) }
}

/// Answers a request of a version that is not served: in version 0, with what is served.
pub fn unsupported() -> ApiVersionsResponse {
    response(Some(ResponseError::UnsupportedVersion))
}

fn refusal(error: ResponseError) -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(error.code())
}

fn response(error: Option<ResponseError>) -> ApiVersionsResponse {
    let api_keys = ADVERTISED
        .iter()
        .map(|&(api, oldest, newest)| {
            ApiVersion::default()
                .with_api_key(api as i16)
                .with_min_version(oldest)
                .with_max_version(newest)
        })
        .collect();
    ApiVersionsResponse::default()
        .with_error_code(error.map_or(0, |error| error.code()))
        .with_api_keys(api_keys)
}

/// Kafka's pattern `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`.
fn is_software_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let [first, .., last] = bytes else {
        return bytes.first().is_some_and(u8::is_ascii_alphanumeric);
    };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_are_those_of_kafka() {
        for good in ["a", "kafka-java", "4.1.0", "a.-b"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-", "a-", ".a", "a b", "a_b", "é"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}

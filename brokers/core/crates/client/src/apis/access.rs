//! DescribeAcls and DescribeUserScramCredentials: what brokers know of users and their rights.

use kafka_protocol::messages::ApiKey;

use super::{Request, plain_text, structures, text};
use freshet_access::acl::BindingCodes;
use freshet_wire::codec::WireError;
use freshet_wire::protocol::decode::Decoder;
use freshet_wire::protocol::encode::Encoder;

/// The code in a filter that stands for everything.
const ANY: i8 = 1;

/// Asks for the ACLs of a principal.
#[derive(Debug, Clone)]
pub struct AclQuery {
    /// `Type:name`.
    pub principal: String,
}

impl Request for AclQuery {
    const API: ApiKey = ApiKey::DescribeAcls;
    const VERSION: i16 = 2;
    const NAME: &'static str = "DescribeAcls";
    type Answer = (i16, Option<String>, Vec<BindingCodes>);

    fn encode(&self, out: &mut Encoder) {
        out.i8(ANY);
        out.nullable_string(None);
        out.i8(ANY);
        out.nullable_string(Some(&self.principal));
        out.nullable_string(None);
        out.i8(ANY);
        out.i8(ANY);
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        let (code, message) = (input.i16()?, text(input)?);
        let resources = structures(input, |input| {
            let (resource_type, name, pattern_type) =
                (input.i8()?, plain_text(input)?, input.i8()?);
            structures(input, |input| {
                Ok(BindingCodes {
                    resource_type,
                    resource_name: name.clone(),
                    pattern_type,
                    principal: plain_text(input)?,
                    host: plain_text(input)?,
                    operation: input.i8()?,
                    permission: input.i8()?,
                })
            })
        })?;
        Ok((code, message, resources.into_iter().flatten().collect()))
    }
}

/// Asks whether a user has credentials.
pub(crate) struct DescribeUser {
    pub user: String,
}

impl Request for DescribeUser {
    const API: ApiKey = ApiKey::DescribeUserScramCredentials;
    const VERSION: i16 = 0;
    const NAME: &'static str = "DescribeUserScramCredentials";
    /// The error of the whole, and each user's error with the number of its credentials.
    type Answer = (i16, Option<String>, Vec<(i16, usize)>);

    fn encode(&self, out: &mut Encoder) {
        out.array([&self.user], |out, user| {
            out.string(user);
            out.tagged(&[]);
        });
        out.tagged(&[]);
    }

    fn decode(input: &mut Decoder, _: bool) -> Result<Self::Answer, WireError> {
        input.i32()?;
        let (code, message) = (input.i16()?, text(input)?);
        let users = structures(input, |input| {
            plain_text(input)?;
            let code = input.i16()?;
            text(input)?;
            let infos = structures(input, |input| Ok((input.i8()?, input.i32()?)))?;
            Ok((code, infos.len()))
        })?;
        Ok((code, message, users))
    }
}

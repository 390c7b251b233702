package provider

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	quotaNameMax    = 255
	quotaAddressMax = 64
	bytesRateMax    = 1e15
	percentageMin   = 0.01
	percentageMax   = 1e6
	connectionsMax  = 1_000_000
)

// quotaFacts are an entity and its quotas, the part that the resource and the data source share.
type quotaFacts struct {
	User                  types.String  `tfsdk:"user"`
	ClientID              types.String  `tfsdk:"client_id"`
	IP                    types.String  `tfsdk:"ip"`
	ProduceBytesPerSecond types.Int64   `tfsdk:"produce_bytes_per_second"`
	FetchBytesPerSecond   types.Int64   `tfsdk:"fetch_bytes_per_second"`
	RequestPercentage     types.Float64 `tfsdk:"request_percentage"`
	Connections           types.Int64   `tfsdk:"connections"`
	ConnectionsPerSecond  types.Int64   `tfsdk:"connections_per_second"`
}

type clientQuotaModel struct {
	ID        types.String `tfsdk:"id"`
	ClusterID types.String `tfsdk:"cluster_id"`
	quotaFacts
}

func clientQuotaResource() resource.Resource {
	return &managed[clientQuotaModel]{
		frame:    frame{name: "client_quota"},
		schema:   clientQuotaSchema(),
		create:   createClientQuota,
		read:     readClientQuota,
		update:   updateClientQuota,
		remove:   removeClientQuota,
		identify: identifyClientQuota,
	}
}

func clientQuotaSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Quotas of Kafka clients: of a user, a client id, both together, or an " +
			"address. They are the ones that `kafka-configs` shows. What is not given is not limited; " +
			"an empty `user`, `client_id` or `ip` means all that have no quotas of their own.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("The cluster's id and the entity, percent-encoded: `cluster/user=name`, " +
				"`cluster/client_id=name`, `cluster/user=name/client_id=name` or `cluster/ip=address`."),
			"cluster_id": inACluster(),
			"user": entityPart("User name, such as `freshet_credential.app.username`.", quotaNameMax,
				stringvalidator.AtLeastOneOf(path.MatchRoot("client_id"), path.MatchRoot("ip"))),
			"client_id": entityPart("Client id, as clients give it.", quotaNameMax),
			"ip": entityPart("Address that clients come from. It stands alone.", quotaAddressMax,
				stringvalidator.ConflictsWith(path.MatchRoot("user"), path.MatchRoot("client_id"))),
			"produce_bytes_per_second": whole("Bytes a second that they may produce.", bytesRateMax,
				int64validator.ConflictsWith(path.MatchRoot("ip")), int64validator.AtLeastOneOf(
					path.MatchRoot("fetch_bytes_per_second"), path.MatchRoot("request_percentage"),
					path.MatchRoot("connections"), path.MatchRoot("connections_per_second"))),
			"fetch_bytes_per_second": whole("Bytes a second that they may fetch.", bytesRateMax,
				int64validator.ConflictsWith(path.MatchRoot("ip"))),
			"request_percentage": schema.Float64Attribute{
				Optional: true,
				MarkdownDescription: "Percentage of the time of one thread that brokers spend for " +
					"them.",
				Validators: []validator.Float64{
					float64validator.Between(percentageMin, percentageMax),
					float64validator.ConflictsWith(path.MatchRoot("ip")),
				},
			},
			"connections": whole("Connections at once. Of a user alone.", connectionsMax,
				int64validator.AlsoRequires(path.MatchRoot("user")),
				int64validator.ConflictsWith(path.MatchRoot("client_id"))),
			"connections_per_second": whole("New connections a second. Of an address alone.",
				connectionsMax, int64validator.AlsoRequires(path.MatchRoot("ip"))),
		},
	}
}

// entityPart is a part of the entity that quotas apply to: a user, a client id or an address.
func entityPart(description string, most int, valid ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: description + " Changing it makes a new one.",
		Validators:          append(valid, stringvalidator.LengthAtMost(most)),
		PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// whole is a quota that is a whole number of at least 1.
func whole(description string, most int64, valid ...validator.Int64) schema.Int64Attribute {
	return schema.Int64Attribute{
		Optional:            true,
		MarkdownDescription: description,
		Validators:          append(valid, int64validator.Between(1, most)),
	}
}

// quotaKey writes an entity as text: its parts as name=value, percent-encoded, slashes between
// them.
func quotaKey(of api.QuotaEntity) string {
	parts := []string{}
	for _, part := range []struct {
		name  string
		value *string
	}{{"user", of.User}, {"client_id", of.ClientID}, {"ip", of.IP}} {
		if part.value != nil {
			parts = append(parts, part.name+"="+url.PathEscape(*part.value))
		}
	}
	return strings.Join(parts, "/")
}

// quotaEntityOf reads what quotaKey wrote: the attributes user, client_id and ip that it names.
func quotaEntityOf(key string) (map[string]string, error) {
	attributes := map[string]string{}
	for _, part := range strings.Split(key, "/") {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.PathUnescape(value)
		_, twice := attributes[name]
		known := name == "user" || name == "client_id" || name == "ip"
		if err != nil || twice || !known || !strings.Contains(part, "=") {
			return nil, fmt.Errorf("%q is not of the form user=name, client_id=name, "+
				"user=name/client_id=name or ip=address", key)
		}
		attributes[name] = plain
	}
	return attributes, nil
}

func (m quotaFacts) wish() api.QuotaWish {
	return api.QuotaWish{
		QuotaEntity: api.QuotaEntity{
			User: optionalText(m.User), ClientID: optionalText(m.ClientID), IP: optionalText(m.IP),
		},
		QuotaValues: api.QuotaValues{
			ProduceBytesPerSecond: floatOf(m.ProduceBytesPerSecond),
			FetchBytesPerSecond:   floatOf(m.FetchBytesPerSecond),
			RequestPercentage:     m.RequestPercentage.ValueFloat64Pointer(),
			Connections:           m.Connections.ValueInt64Pointer(),
			ConnectionsPerSecond:  floatOf(m.ConnectionsPerSecond),
		},
	}
}

// wholeOf and floatOf convert between Terraform's whole numbers and JSON's numbers.
func wholeOf(value *float64) types.Int64 {
	if value == nil {
		return types.Int64Null()
	}
	return types.Int64Value(int64(math.Round(*value)))
}

func floatOf(value types.Int64) *float64 {
	number := optionalNumber(value)
	if number == nil {
		return nil
	}
	float := float64(*number)
	return &float
}

// show fills in the quotas as they are, and the id.
func (m *clientQuotaModel) show(quota api.ClientQuota) {
	m.ID = types.StringValue(m.ClusterID.ValueString() + "/" + quotaKey(quota.QuotaEntity))
	m.quotaFacts.show(quota)
}

func (m *quotaFacts) show(quota api.ClientQuota) {
	m.User = types.StringPointerValue(quota.User)
	m.ClientID = types.StringPointerValue(quota.ClientID)
	m.IP = types.StringPointerValue(quota.IP)
	m.ProduceBytesPerSecond = wholeOf(quota.ProduceBytesPerSecond)
	m.FetchBytesPerSecond = wholeOf(quota.FetchBytesPerSecond)
	m.RequestPercentage = types.Float64PointerValue(quota.RequestPercentage)
	m.Connections = types.Int64PointerValue(quota.Connections)
	m.ConnectionsPerSecond = wholeOf(quota.ConnectionsPerSecond)
}

// createClientQuota sets the quotas of an entity that has none, or the same, or has them from the
// credential that it replaced. Quotas that somebody else manages are not overwritten.
func createClientQuota(
	ctx context.Context, s *session, plan *clientQuotaModel, _ clientQuotaModel,
) (bool, error) {
	cluster, wish := plan.ClusterID.ValueString(), plan.wish()
	key := quotaKey(wish.QuotaEntity)
	current, exists, err := s.quotas.Find(ctx, cluster, key)
	if err != nil {
		return false, err
	}
	if exists && !reflect.DeepEqual(current.QuotaValues, wish.QuotaValues) {
		inherited, err := s.isReplacement(ctx, cluster, wish.User)
		if err != nil {
			return false, err
		}
		if !inherited {
			return false, fmt.Errorf("%s has other quotas already: import %s/%s, or remove them", key,
				cluster, key)
		}
	}
	err = setClientQuota(ctx, s, plan)
	return err == nil, err
}

// isReplacement says whether a user is a credential that was made by a rotation, and so has the
// quotas of the credential before it.
func (s *session) isReplacement(ctx context.Context, cluster string, user *string) (bool, error) {
	if user == nil {
		return false, nil
	}
	credential, err := s.credentials.first(ctx, cluster, *user, func(candidate api.Credential) bool {
		return candidate.Username == *user
	})
	if api.IsNotFound(err) {
		return false, nil
	}
	return credential.Replaces != nil, err
}

func setClientQuota(ctx context.Context, s *session, plan *clientQuotaModel) error {
	cluster := plan.ClusterID.ValueString()
	quota, err := s.api.SetClientQuota(ctx, cluster, plan.wish())
	if err != nil {
		return err
	}
	s.quotas.Put(cluster, quota)
	plan.show(quota)
	return nil
}

func readClientQuota(ctx context.Context, s *session, state *clientQuotaModel) error {
	key := quotaKey(state.wish().QuotaEntity)
	quota, err := s.quotas.get(ctx, state.ClusterID.ValueString(), key)
	if err == nil {
		state.show(quota)
	}
	return err
}

func updateClientQuota(
	ctx context.Context, s *session, plan *clientQuotaModel, _, _ clientQuotaModel,
) error {
	return setClientQuota(ctx, s, plan)
}

func removeClientQuota(ctx context.Context, s *session, state clientQuotaModel) error {
	cluster, entity := state.ClusterID.ValueString(), state.wish().QuotaEntity
	if entity.User != nil {
		rotated, err := s.wasReplaced(ctx, cluster, "User:"+*entity.User)
		if err != nil || rotated {
			return err
		}
	}
	err := s.api.DeleteClientQuota(ctx, cluster, entity)
	return s.quotas.removed(cluster, quotaKey(entity), err)
}

// identifyClientQuota reads the id of an import: the id that the resource shows, or cluster/ and
// the id that the service derives from the entity. The cluster is named by its id or its name.
func identifyClientQuota(ctx context.Context, s *session, id string) (map[string]string, error) {
	cluster, key, err := s.inCluster(ctx, id)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(key, "qta_") {
		match, err := s.quotas.first(ctx, cluster, key, func(quota api.ClientQuota) bool {
			return quota.ID == key
		})
		if err != nil {
			return nil, err
		}
		key = quotaKey(match.QuotaEntity)
	}
	attributes, err := quotaEntityOf(key)
	if err != nil {
		return nil, err
	}
	attributes["cluster_id"] = cluster
	return attributes, nil
}

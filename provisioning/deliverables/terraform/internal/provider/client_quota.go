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

// quotaFacts are an entity and its quotas, as the resource and the data source have them.
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

// entityPart is a part of whom quotas are of.
func entityPart(description string, most int, valid ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{
		Optional:            true,
		MarkdownDescription: description + " Changing it makes a new one.",
		Validators:          append(valid, stringvalidator.LengthAtMost(most)),
		PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// whole is a quota that Kafka has as a whole number.
func whole(description string, most int64, valid ...validator.Int64) schema.Int64Attribute {
	return schema.Int64Attribute{
		Optional:            true,
		MarkdownDescription: description,
		Validators:          append(valid, int64validator.Between(1, most)),
	}
}

// quotaKey is an entity as text: its parts with their names, percent-encoded, slashes between them.
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

// quotaEntityOf reads what quotaKey wrote, as attributes.
func quotaEntityOf(key string) (map[string]string, error) {
	found := map[string]string{}
	for _, part := range strings.Split(key, "/") {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.PathUnescape(value)
		_, twice := found[name]
		known := name == "user" || name == "client_id" || name == "ip"
		if err != nil || twice || !known || !strings.Contains(part, "=") {
			return nil, fmt.Errorf("%q is not of the form user=name, client_id=name, "+
				"user=name/client_id=name or ip=address", key)
		}
		found[name] = plain
	}
	return found, nil
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

// wholeOf and floatOf pass between Terraform's whole numbers and JSON's, which are all alike.
func wholeOf(value *float64) types.Int64 {
	if value == nil {
		return types.Int64Null()
	}
	return types.Int64Value(int64(math.Round(*value)))
}

func floatOf(value types.Int64) *float64 {
	given := optionalNumber(value)
	if given == nil {
		return nil
	}
	found := float64(*given)
	return &found
}

// show fills in what there is; what is computed too.
func (m *clientQuotaModel) show(found api.ClientQuota) {
	m.ID = types.StringValue(m.ClusterID.ValueString() + "/" + quotaKey(found.QuotaEntity))
	m.quotaFacts.show(found)
}

func (m *quotaFacts) show(found api.ClientQuota) {
	m.User = types.StringPointerValue(found.User)
	m.ClientID = types.StringPointerValue(found.ClientID)
	m.IP = types.StringPointerValue(found.IP)
	m.ProduceBytesPerSecond = wholeOf(found.ProduceBytesPerSecond)
	m.FetchBytesPerSecond = wholeOf(found.FetchBytesPerSecond)
	m.RequestPercentage = types.Float64PointerValue(found.RequestPercentage)
	m.Connections = types.Int64PointerValue(found.Connections)
	m.ConnectionsPerSecond = wholeOf(found.ConnectionsPerSecond)
}

// createClientQuota sets quotas of an entity that has none. To set them over those that somebody
// else keeps would be to fight with them.
func createClientQuota(
	ctx context.Context, s *session, plan *clientQuotaModel, _ clientQuotaModel,
) (bool, error) {
	cluster, wish := plan.ClusterID.ValueString(), plan.wish()
	key := quotaKey(wish.QuotaEntity)
	found, there, err := s.quotas.Find(ctx, cluster, key)
	if err != nil {
		return false, err
	}
	if there && !reflect.DeepEqual(found.QuotaValues, wish.QuotaValues) {
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

// isReplacement tells whether a user is a credential in the place of one that was rotated: it has
// the quotas of that one.
func (s *session) isReplacement(ctx context.Context, cluster string, user *string) (bool, error) {
	if user == nil {
		return false, nil
	}
	found, err := s.credentials.first(ctx, cluster, *user, func(each api.Credential) bool {
		return each.Username == *user
	})
	if api.IsNotFound(err) {
		return false, nil
	}
	return found.Replaces != nil, err
}

func setClientQuota(ctx context.Context, s *session, plan *clientQuotaModel) error {
	cluster := plan.ClusterID.ValueString()
	found, err := s.api.SetClientQuota(ctx, cluster, plan.wish())
	if err != nil {
		return err
	}
	s.quotas.Put(cluster, found)
	plan.show(found)
	return nil
}

func readClientQuota(ctx context.Context, s *session, state *clientQuotaModel) error {
	key := quotaKey(state.wish().QuotaEntity)
	found, err := s.quotas.get(ctx, state.ClusterID.ValueString(), key)
	if err == nil {
		state.show(found)
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

// identifyClientQuota takes the id that the resource shows or the service's own, the cluster by its
// id or its name.
func identifyClientQuota(ctx context.Context, s *session, id string) (map[string]string, error) {
	cluster, key, err := s.inCluster(ctx, id)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(key, "qta_") {
		found, err := s.quotas.first(ctx, cluster, key, func(each api.ClientQuota) bool {
			return each.ID == key
		})
		if err != nil {
			return nil, err
		}
		key = quotaKey(found.QuotaEntity)
	}
	named, err := quotaEntityOf(key)
	if err != nil {
		return nil, err
	}
	named["cluster_id"] = cluster
	return named, nil
}

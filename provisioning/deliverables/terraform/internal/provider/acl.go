package provider

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
	"freshet/terraform/internal/batch"
)

var (
	topicNamePattern = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)
	principalPattern = regexp.MustCompile(`^User:.+$`)
)

var (
	resourceTypes = []string{
		"TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER",
	}
	aclOperations = []string{
		"ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
		"DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS",
		"DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
	}
)

// aclEntry is the part of an entry that the resource and the data source have in common.
type aclEntry struct {
	Principal    types.String `tfsdk:"principal"`
	ResourceType types.String `tfsdk:"resource_type"`
	ResourceName types.String `tfsdk:"resource_name"`
	PatternType  types.String `tfsdk:"pattern_type"`
	Operation    types.String `tfsdk:"operation"`
	Permission   types.String `tfsdk:"permission"`
	Host         types.String `tfsdk:"host"`
}

type aclModel struct {
	ID        types.String `tfsdk:"id"`
	ClusterID types.String `tfsdk:"cluster_id"`
	aclEntry
}

func aclResource() resource.Resource {
	return &managed[aclModel]{
		frame:    frame{name: "acl"},
		schema:   aclSchema(),
		create:   createACL,
		read:     readACL,
		remove:   removeACL,
		identify: identifyACL,
	}
}

func aclSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "An entry of a cluster's access control list. An entry is all of its " +
			"fields, so every change makes a new one.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("The cluster's id and the fields, percent-encoded, with `/` between " +
				"them: principal, resource type, pattern type, resource name, operation, permission, " +
				"host."),
			"cluster_id": inACluster(),
			"principal": fixedText("Who: `User:` and a credential's user name, or `User:*`.",
				stringvalidator.RegexMatches(principalPattern, "`User:` and a name, or `User:*`")),
			"resource_type": fixedText("What kind of thing: "+quoted(resourceTypes)+".",
				stringvalidator.OneOf(resourceTypes...)),
			"resource_name": fixedText("Its name, a prefix of names, `*` for all, or `kafka-cluster` "+
				"for the cluster.", stringvalidator.LengthAtLeast(1)),
			"pattern_type": defaultText("Whether `resource_name` is a name or a prefix.", "LITERAL",
				"LITERAL", "PREFIXED"),
			"operation": fixedText("What is allowed or denied: "+quoted(aclOperations)+".",
				stringvalidator.OneOf(aclOperations...)),
			"permission": defaultText("What the entry does.", "ALLOW", "ALLOW", "DENY"),
			"host":       defaultText("Address that clients come from, `*` for all.", "*"),
		},
	}
}

// defaultText is a text with a default, one of values where there are any. Another value replaces
// the resource.
func defaultText(description, fallback string, values ...string) schema.StringAttribute {
	attribute := schema.StringAttribute{
		Optional:      true,
		Computed:      true,
		Default:       stringdefault.StaticString(fallback),
		PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
	if len(values) > 0 {
		description += " One of " + quoted(values) + "."
		attribute.Validators = []validator.String{stringvalidator.OneOf(values...)}
	}
	attribute.MarkdownDescription = description + " Default: `" + fallback +
		"`. Changing it makes a new one."
	return attribute
}

// quoted lists values for a description, each as code.
func quoted(values []string) string { return "`" + strings.Join(values, "`, `") + "`" }

// aclKey writes an entry as text: its fields, percent-encoded, with slashes between them.
func aclKey(entry api.NewACL) string {
	parts := []string{
		entry.Principal, entry.ResourceType, entry.PatternType, entry.ResourceName,
		entry.Operation, entry.Permission, entry.Host,
	}
	for i, part := range parts {
		// PathEscape also encodes a star, which people read and write here.
		parts[i] = strings.ReplaceAll(url.PathEscape(part), "%2A", "*")
	}
	return strings.Join(parts, "/")
}

// aclOf reads what aclKey wrote.
func aclOf(key string) (api.NewACL, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 7 {
		return api.NewACL{}, fmt.Errorf("%q is not of the form principal/resource type/pattern type/"+
			"resource name/operation/permission/host", key)
	}
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return api.NewACL{}, fmt.Errorf("%q: %w", part, err)
		}
		parts[i] = plain
	}
	return api.NewACL{
		Principal: parts[0], ResourceType: parts[1], PatternType: parts[2],
		ResourceName: parts[3], Operation: parts[4], Permission: parts[5], Host: parts[6],
	}, nil
}

func (m aclEntry) entry() api.NewACL {
	return api.NewACL{
		Principal:    m.Principal.ValueString(),
		ResourceType: m.ResourceType.ValueString(),
		ResourceName: m.ResourceName.ValueString(),
		PatternType:  m.PatternType.ValueString(),
		Operation:    m.Operation.ValueString(),
		Permission:   m.Permission.ValueString(),
		Host:         m.Host.ValueString(),
	}
}

func createACL(ctx context.Context, s *session, plan *aclModel, _ aclModel) (bool, error) {
	cluster, entry := plan.ClusterID.ValueString(), plan.entry()
	if _, err := s.newACLs.Do(ctx, cluster, entry); err != nil {
		return false, err
	}
	plan.ID = types.StringValue(cluster + "/" + aclKey(entry))
	return true, nil
}

func readACL(ctx context.Context, s *session, state *aclModel) error {
	cluster, key := state.ClusterID.ValueString(), aclKey(state.entry())
	_, err := s.acls.get(ctx, cluster, key)
	state.ID = types.StringValue(cluster + "/" + key)
	return err
}

func removeACL(ctx context.Context, s *session, state aclModel) error {
	cluster, entry := state.ClusterID.ValueString(), state.entry()
	rotated, err := s.wasReplaced(ctx, cluster, entry.Principal)
	if err != nil || rotated {
		return err
	}
	return s.acls.removed(cluster, aclKey(entry), s.api.DeleteACL(ctx, cluster, entry))
}

// wasReplaced says whether a principal is a credential that was rotated and still authenticates.
// Its ACLs and quotas must stay until it ends by itself: removing them sooner would stop clients
// that do not use the new credential yet.
func (s *session) wasReplaced(ctx context.Context, cluster, principal string) (bool, error) {
	credential, err := s.credentials.first(ctx, cluster, principal, func(other api.Credential) bool {
		return other.Principal == principal
	})
	if api.IsNotFound(err) {
		return false, nil
	}
	return credential.ReplacedBy != nil, err
}

// identifyACL reads the id of an import: the id that the resource shows, or cluster/ and the id
// that the service derives from the entry. The cluster is named by its id or its name.
func identifyACL(ctx context.Context, s *session, id string) (map[string]string, error) {
	cluster, key, err := s.inCluster(ctx, id)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(key, "acl_") {
		match, err := s.acls.first(ctx, cluster, key, func(entry api.ACL) bool { return entry.ID == key })
		if err != nil {
			return nil, err
		}
		key = aclKey(match.NewACL)
	}
	entry, err := aclOf(key)
	return map[string]string{
		"cluster_id":    cluster,
		"principal":     entry.Principal,
		"resource_type": entry.ResourceType,
		"resource_name": entry.ResourceName,
		"pattern_type":  entry.PatternType,
		"operation":     entry.Operation,
		"permission":    entry.Permission,
		"host":          entry.Host,
	}, err
}

// sendACLs adds entries with one request; where that is refused, each with one of its own.
func (s *session) sendACLs(
	ctx context.Context, cluster string, entries []api.NewACL,
) []batch.Result[struct{}] {
	send := func(entries []api.NewACL) ([]struct{}, error) {
		if err := s.api.CreateACLs(ctx, cluster, entries); err != nil {
			return nil, err
		}
		for _, entry := range entries {
			s.acls.Put(cluster, api.ACL{NewACL: entry})
		}
		return make([]struct{}, len(entries)), nil
	}
	return batch.AllOrEach(entries, send, api.IsRefused)
}

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

type aclsModel struct {
	ClusterID types.String `tfsdk:"cluster_id"`
	Principal types.String `tfsdk:"principal"`
	ACLs      []shownACL   `tfsdk:"acls"`
}

type shownACL struct {
	Principal    types.String `tfsdk:"principal"`
	ResourceType types.String `tfsdk:"resource_type"`
	ResourceName types.String `tfsdk:"resource_name"`
	PatternType  types.String `tfsdk:"pattern_type"`
	Operation    types.String `tfsdk:"operation"`
	Permission   types.String `tfsdk:"permission"`
	Host         types.String `tfsdk:"host"`
}

func aclsSource() datasource.DataSource {
	return newSource(sourceDefinition[aclsModel]{
		name: "acls",
		schema: schema.Schema{
			MarkdownDescription: "Entries of a cluster's access control list.",
			Attributes: map[string]schema.Attribute{
				"cluster_id": givenText("Id of the cluster."),
				"principal": schema.StringAttribute{
					Optional: true, MarkdownDescription: "Only those of this principal.",
				},
				"acls": shownList("The entries.", map[string]schema.Attribute{
					"principal":     shownText("Who."),
					"resource_type": shownText("What kind of thing."),
					"resource_name": shownText("Its name, or a prefix."),
					"pattern_type":  shownText("`LITERAL` or `PREFIXED`."),
					"operation":     shownText("What is allowed or denied."),
					"permission":    shownText("`ALLOW` or `DENY`."),
					"host":          shownText("Address that clients come from."),
				}),
			},
		},
		read: func(ctx context.Context, s *session, model *aclsModel) error {
			all, err := s.acls.All(ctx, model.ClusterID.ValueString())
			model.ACLs = []shownACL{}
			for _, each := range all {
				if model.Principal.IsNull() || model.Principal.ValueString() == each.Principal {
					model.ACLs = append(model.ACLs, showACL(each))
				}
			}
			return err
		},
	})
}

func showACL(entry api.ACL) shownACL {
	return shownACL{
		Principal:    types.StringValue(entry.Principal),
		ResourceType: types.StringValue(entry.ResourceType),
		ResourceName: types.StringValue(entry.ResourceName),
		PatternType:  types.StringValue(entry.PatternType),
		Operation:    types.StringValue(entry.Operation),
		Permission:   types.StringValue(entry.Permission),
		Host:         types.StringValue(entry.Host),
	}
}

type shownCredential struct {
	ClusterID types.String `tfsdk:"cluster_id"`
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	Role      types.String `tfsdk:"role"`
	Mechanism types.String `tfsdk:"mechanism"`
	Username  types.String `tfsdk:"username"`
	Principal types.String `tfsdk:"principal"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func showCredential(cluster string, found api.Credential) shownCredential {
	return shownCredential{
		ClusterID: types.StringValue(cluster),
		ID:        types.StringValue(found.ID),
		Name:      types.StringValue(found.Name),
		Role:      types.StringValue(found.Role),
		Mechanism: types.StringValue(found.Mechanism),
		Username:  types.StringValue(found.Username),
		Principal: types.StringValue(found.Principal),
		CreatedAt: types.StringValue(found.CreatedAt),
	}
}

func credentialAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster_id": shownText("Id of the cluster."),
		"id":         shownText("Id."),
		"name":       shownText("Name."),
		"role":       shownText("Which rights it began with."),
		"mechanism":  shownText("How clients authenticate."),
		"username":   shownText("User name for clients."),
		"principal":  shownText("Name in `freshet_acl`."),
		"created_at": shownText("When it was made, RFC 3339."),
	}
}

func credentialSource() datasource.DataSource {
	attributes := credentialAttributes()
	attributes["cluster_id"] = givenText("Id of the cluster.")
	attributes["name"] = givenText("Name of the credential.")
	return newSource(sourceDefinition[shownCredential]{
		name: "credential",
		schema: schema.Schema{
			MarkdownDescription: "A credential of Kafka clients, without its password.",
			Attributes:          attributes,
		},
		read: func(ctx context.Context, s *session, model *shownCredential) error {
			cluster := model.ClusterID.ValueString()
			found, err := s.credentialNamed(ctx, cluster, model.Name.ValueString())
			*model = showCredential(cluster, found)
			return err
		},
	})
}

type credentialsModel struct {
	ClusterID   types.String      `tfsdk:"cluster_id"`
	Credentials []shownCredential `tfsdk:"credentials"`
}

func credentialsSource() datasource.DataSource {
	return newSource(sourceDefinition[credentialsModel]{
		name: "credentials",
		schema: schema.Schema{
			MarkdownDescription: "Credentials of a cluster's clients, without their passwords.",
			Attributes: map[string]schema.Attribute{
				"cluster_id":  givenText("Id of the cluster."),
				"credentials": shownList("The credentials, by id.", credentialAttributes()),
			},
		},
		read: func(ctx context.Context, s *session, model *credentialsModel) error {
			cluster := model.ClusterID.ValueString()
			all, err := s.credentials.All(ctx, cluster)
			model.Credentials = []shownCredential{}
			for _, each := range all {
				model.Credentials = append(model.Credentials, showCredential(cluster, each))
			}
			return err
		},
	})
}

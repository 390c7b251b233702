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
	ACLs      []aclEntry   `tfsdk:"acls"`
}

func aclsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"cluster_id": givenText("Id of the cluster."),
		"principal":  filterText("Only those of this principal."),
		"acls": shownList("The entries.", map[string]schema.Attribute{
			"principal":     shownText("Who."),
			"resource_type": shownText("What kind of thing."),
			"resource_name": shownText("Its name, or a prefix."),
			"pattern_type":  shownText("`LITERAL` or `PREFIXED`."),
			"operation":     shownText("What is allowed or denied."),
			"permission":    shownText("`ALLOW` or `DENY`."),
			"host":          shownText("Address that clients come from."),
		}),
	}
	return newSource("acls", "Entries of a cluster's access control list.", shows,
		func(ctx context.Context, s *session, model *aclsModel) error {
			all, err := s.acls.All(ctx, model.ClusterID.ValueString())
			model.ACLs = shownAll(all, func(entry api.ACL) bool {
				return fitsFilter(model.Principal, entry.Principal)
			}, showACL)
			return err
		})
}

func showACL(entry api.ACL) aclEntry {
	return aclEntry{
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
	ClusterID  types.String `tfsdk:"cluster_id"`
	Mechanisms types.Set    `tfsdk:"mechanisms"`
	credentialFacts
}

func showCredential(cluster string, credential api.Credential) shownCredential {
	shown := shownCredential{ClusterID: types.StringValue(cluster)}
	shown.show(credential)
	return shown
}

func (m *shownCredential) show(credential api.Credential) {
	m.credentialFacts.show(credential)
	m.Mechanisms = textSetOf(credential.Mechanisms)
}

func credentialAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster_id": shownText("Id of the cluster."),
		"id":         shownText("Id."),
		"name":       shownText("Name."),
		"role":       shownText("Which rights it began with."),
		"mechanism":  shownText("How clients authenticate."),
		"mechanisms": shownTexts("All mechanisms that work; with one alone, rotate it to have both."),
		"username":   shownText("User name for clients."),
		"principal":  shownText("Name in `freshet_acl`."),
		"created_at": shownText("When it was made, RFC 3339."),
	}
}

func credentialSource() datasource.DataSource {
	shows := credentialAttributes()
	shows["cluster_id"] = givenText("Id of the cluster.")
	shows["name"] = givenText("Name of the credential.")
	return newSource("credential", "A credential of Kafka clients, without its password.", shows,
		func(ctx context.Context, s *session, model *shownCredential) error {
			cluster := model.ClusterID.ValueString()
			credential, err := s.credentialNamed(ctx, cluster, model.Name.ValueString())
			model.show(credential)
			return err
		})
}

type credentialsModel struct {
	ClusterID   types.String      `tfsdk:"cluster_id"`
	Credentials []shownCredential `tfsdk:"credentials"`
}

func credentialsSource() datasource.DataSource {
	shows := map[string]schema.Attribute{
		"cluster_id":  givenText("Id of the cluster."),
		"credentials": shownList("The credentials, by id.", credentialAttributes()),
	}
	return newSource("credentials", "Credentials of a cluster's clients, without their passwords.",
		shows, func(ctx context.Context, s *session, model *credentialsModel) error {
			cluster := model.ClusterID.ValueString()
			all, err := s.credentials.All(ctx, cluster)
			model.Credentials = shownAll(all, every, func(credential api.Credential) shownCredential {
				return showCredential(cluster, credential)
			})
			return err
		})
}

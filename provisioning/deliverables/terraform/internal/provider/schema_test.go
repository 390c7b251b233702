package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// schemasOf returns the schemas as Terraform gets them. The framework checks them on the way.
func schemasOf(t *testing.T) *tfprotov6.GetProviderSchemaResponse {
	t.Helper()
	server := providerserver.NewProtocol6(New("test")())()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, diagnostic := range schemas.Diagnostics {
		t.Errorf("%s: %s", diagnostic.Summary, diagnostic.Detail)
	}
	return schemas
}

// walk calls look with each attribute of a schema, those inside of others too.
func walk(attributes []*tfprotov6.SchemaAttribute, look func(*tfprotov6.SchemaAttribute)) {
	for _, attribute := range attributes {
		look(attribute)
		if attribute.NestedType != nil {
			walk(attribute.NestedType.Attributes, look)
		}
	}
}

func TestNoSecretCanReachAState(t *testing.T) {
	for name, schema := range schemasOf(t).ResourceSchemas {
		walk(schema.Block.Attributes, func(attribute *tfprotov6.SchemaAttribute) {
			if attribute.Sensitive && !attribute.WriteOnly {
				t.Errorf("%s.%s would be in the state", name, attribute.Name)
			}
			if attribute.Name == "password" || attribute.Name == "secret" {
				t.Errorf("%s.%s is no write-only attribute", name, attribute.Name)
			}
		})
	}
	for name, schema := range schemasOf(t).DataSourceSchemas {
		walk(schema.Block.Attributes, func(attribute *tfprotov6.SchemaAttribute) {
			if attribute.Sensitive {
				t.Errorf("%s.%s would be in the state", name, attribute.Name)
			}
		})
	}
}

func TestSecretsOfARunAreSensitive(t *testing.T) {
	for name, schema := range schemasOf(t).EphemeralResourceSchemas {
		secrets := 0
		walk(schema.Block.Attributes, func(attribute *tfprotov6.SchemaAttribute) {
			if attribute.Sensitive {
				secrets++
			}
		})
		if secrets == 0 {
			t.Errorf("%s has no secret: it need not be ephemeral", name)
		}
	}
}

func TestEverythingIsDescribed(t *testing.T) {
	schemas := schemasOf(t)
	all := map[string]*tfprotov6.Schema{"the provider": schemas.Provider}
	for name, schema := range schemas.ResourceSchemas {
		all["resource "+name] = schema
	}
	for name, schema := range schemas.DataSourceSchemas {
		all["data source "+name] = schema
	}
	for name, schema := range schemas.EphemeralResourceSchemas {
		all["ephemeral resource "+name] = schema
	}
	for name, schema := range all {
		if schema.Block.Description == "" {
			t.Errorf("%s is not described", name)
		}
		walk(schema.Block.Attributes, func(attribute *tfprotov6.SchemaAttribute) {
			if attribute.Description == "" {
				t.Errorf("%s: %s is not described", name, attribute.Name)
			}
		})
	}
}

package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// sourceDefinition is one type of data source. read fills in the model from what it was given.
type sourceDefinition[M any] struct {
	name   string
	schema schema.Schema
	read   func(ctx context.Context, s *session, model *M) error
}

// source makes a data source of a definition.
type source[M any] struct {
	sourceDefinition[M]
	session *session
}

func newSource[M any](of sourceDefinition[M]) datasource.DataSource {
	return &source[M]{sourceDefinition: of}
}

var _ datasource.DataSourceWithConfigure = (*source[struct{}])(nil)

func (d *source[M]) Metadata(
	_ context.Context, _ datasource.MetadataRequest, answer *datasource.MetadataResponse,
) {
	answer.TypeName = typePrefix + d.name
}

func (d *source[M]) Schema(
	_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse,
) {
	answer.Schema = d.schema
}

func (d *source[M]) Configure(
	_ context.Context, request datasource.ConfigureRequest, answer *datasource.ConfigureResponse,
) {
	d.session = sessionFrom(request.ProviderData, &answer.Diagnostics)
}

func (d *source[M]) Read(
	ctx context.Context, request datasource.ReadRequest, answer *datasource.ReadResponse,
) {
	var model M
	answer.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if answer.Diagnostics.HasError() {
		return
	}
	if err := d.read(ctx, d.session, &model); err != nil {
		report(&answer.Diagnostics, "Cannot read the "+spoken(d.name), err, nil)
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, &model)...)
}

// spoken is a type's name as it is in a sentence.
func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// source is one type of data source. read gets the model as a configuration has it, and fills in
// the rest.
type source[M any] struct {
	frame
	schema schema.Schema
	read   func(ctx context.Context, s *session, model *M) error
}

var _ datasource.DataSourceWithConfigure = (*source[struct{}])(nil)

// newSource makes a data source from its name, its description, the attributes that it shows, and
// the function that reads it.
func newSource[M any](
	name, description string,
	shows map[string]schema.Attribute,
	read func(ctx context.Context, s *session, model *M) error,
) datasource.DataSource {
	described := schema.Schema{MarkdownDescription: description, Attributes: shows}
	return &source[M]{frame: frame{name: name}, schema: described, read: read}
}

func (d *source[M]) Metadata(
	_ context.Context, _ datasource.MetadataRequest, answer *datasource.MetadataResponse,
) {
	answer.TypeName = d.typeName()
}

func (d *source[M]) Schema(
	_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse,
) {
	answer.Schema = d.schema
}

func (d *source[M]) Configure(
	_ context.Context, request datasource.ConfigureRequest, answer *datasource.ConfigureResponse,
) {
	d.configure(request.ProviderData, &answer.Diagnostics)
}

func (d *source[M]) Read(
	ctx context.Context, request datasource.ReadRequest, answer *datasource.ReadResponse,
) {
	fill := func(model *M) error { return d.read(ctx, d.session, model) }
	model, filled := filledIn(ctx, request.Config, &answer.Diagnostics, d.cannot("read"), fill)
	if filled {
		answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
	}
}

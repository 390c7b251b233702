package provider

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
)

// transient is one type of ephemeral resource: made for one run, ended with it. open fills in the
// model and gives what end needs to know, which no state keeps.
type transient[M any] struct {
	frame
	schema schema.Schema
	open   func(ctx context.Context, s *session, model *M) (handle map[string]string, err error)
	end    func(ctx context.Context, s *session, handle map[string]string) error
}

// handleKey is what the handle is kept under between open and end.
const handleKey = "handle"

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*transient[struct{}])(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*transient[struct{}])(nil)
)

func (e *transient[M]) Metadata(
	_ context.Context, _ ephemeral.MetadataRequest, answer *ephemeral.MetadataResponse,
) {
	answer.TypeName = e.typeName()
}

func (e *transient[M]) Schema(
	_ context.Context, _ ephemeral.SchemaRequest, answer *ephemeral.SchemaResponse,
) {
	answer.Schema = e.schema
}

func (e *transient[M]) Configure(
	_ context.Context, request ephemeral.ConfigureRequest, answer *ephemeral.ConfigureResponse,
) {
	e.configure(request.ProviderData, &answer.Diagnostics)
}

func (e *transient[M]) Open(
	ctx context.Context, request ephemeral.OpenRequest, answer *ephemeral.OpenResponse,
) {
	var kept []byte
	fill := func(model *M) error {
		handle, err := e.open(ctx, e.session, model)
		if err == nil {
			kept, err = json.Marshal(handle)
		}
		return err
	}
	model, made := filledIn(ctx, request.Config, &answer.Diagnostics, e.cannot("make"), fill)
	if made {
		answer.Diagnostics.Append(answer.Private.SetKey(ctx, handleKey, kept)...)
		answer.Diagnostics.Append(answer.Result.Set(ctx, model)...)
	}
}

func (e *transient[M]) Close(
	ctx context.Context, request ephemeral.CloseRequest, answer *ephemeral.CloseResponse,
) {
	kept, found := request.Private.GetKey(ctx, handleKey)
	answer.Diagnostics.Append(found...)
	if len(kept) == 0 || answer.Diagnostics.HasError() {
		return
	}
	e.endKept(ctx, kept, &answer.Diagnostics)
}

func (e *transient[M]) endKept(ctx context.Context, kept []byte, to *diag.Diagnostics) {
	var handle map[string]string
	err := json.Unmarshal(kept, &handle)
	if err == nil {
		err = e.end(ctx, e.session, handle)
	}
	report(to, e.cannot("end"), err, nil)
}

// passingName is a name for what lives as long as a run: the given one with something random behind
// it, because several runs may be on the way at once.
func passingName(given string) string {
	if given == "" {
		given = "terraform"
	}
	return fmt.Sprintf("%s %s", given, strings.ToLower(rand.Text()[:8]))
}

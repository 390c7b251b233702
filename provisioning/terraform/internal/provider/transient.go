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

// transientDefinition is one type of ephemeral resource: made for one run, ended with it. open
// fills in the model and gives what close needs to know, which no state keeps.
type transientDefinition[M any] struct {
	name   string
	schema schema.Schema
	open   func(ctx context.Context, s *session, model *M) (handle map[string]string, err error)
	close  func(ctx context.Context, s *session, handle map[string]string) error
}

// transient makes an ephemeral resource of a definition.
type transient[M any] struct {
	transientDefinition[M]
	session *session
}

func newTransient[M any](of transientDefinition[M]) ephemeral.EphemeralResource {
	return &transient[M]{transientDefinition: of}
}

// handleKey is what the handle is kept under between open and close.
const handleKey = "handle"

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*transient[struct{}])(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*transient[struct{}])(nil)
)

func (e *transient[M]) Metadata(
	_ context.Context, _ ephemeral.MetadataRequest, answer *ephemeral.MetadataResponse,
) {
	answer.TypeName = typePrefix + e.name
}

func (e *transient[M]) Schema(
	_ context.Context, _ ephemeral.SchemaRequest, answer *ephemeral.SchemaResponse,
) {
	answer.Schema = e.schema
}

func (e *transient[M]) Configure(
	_ context.Context, request ephemeral.ConfigureRequest, answer *ephemeral.ConfigureResponse,
) {
	e.session = sessionFrom(request.ProviderData, &answer.Diagnostics)
}

func (e *transient[M]) Open(
	ctx context.Context, request ephemeral.OpenRequest, answer *ephemeral.OpenResponse,
) {
	var model M
	answer.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	if answer.Diagnostics.HasError() {
		return
	}
	handle, err := e.open(ctx, e.session, &model)
	if err != nil {
		report(&answer.Diagnostics, "Cannot make the "+spoken(e.name), err, nil)
		return
	}
	kept, err := json.Marshal(handle)
	report(&answer.Diagnostics, "Cannot keep the "+spoken(e.name), err, nil)
	answer.Diagnostics.Append(answer.Private.SetKey(ctx, handleKey, kept)...)
	answer.Diagnostics.Append(answer.Result.Set(ctx, &model)...)
}

func (e *transient[M]) Close(
	ctx context.Context, request ephemeral.CloseRequest, answer *ephemeral.CloseResponse,
) {
	kept, found := request.Private.GetKey(ctx, handleKey)
	answer.Diagnostics.Append(found...)
	if len(kept) == 0 || answer.Diagnostics.HasError() {
		return
	}
	answer.Diagnostics.Append(e.end(ctx, kept)...)
}

func (e *transient[M]) end(ctx context.Context, kept []byte) (found diag.Diagnostics) {
	var handle map[string]string
	err := json.Unmarshal(kept, &handle)
	if err == nil {
		err = e.close(ctx, e.session, handle)
	}
	report(&found, "Cannot end the "+spoken(e.name), err, nil)
	return found
}

// passingName is a name for what lives as long as a run: the given one with something random behind
// it, because several runs may be on the way at once.
func passingName(given string) string {
	if given == "" {
		given = "terraform"
	}
	return fmt.Sprintf("%s %s", given, strings.ToLower(rand.Text()[:8]))
}

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

// transient is one type of ephemeral resource, which is made for one run and ended with it. open
// fills in the model and returns the handle that end needs, which is in no state.
type transient[M any] struct {
	frame
	schema schema.Schema
	open   func(ctx context.Context, s *session, model *M) (handle map[string]string, err error)
	end    func(ctx context.Context, s *session, handle map[string]string) error
}

// handleKey is the key of the private data in which Terraform stores the handle between Open and
// Close.
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
	var stored []byte
	fill := func(model *M) error {
		handle, err := e.open(ctx, e.session, model)
		if err == nil {
			stored, err = json.Marshal(handle)
		}
		return err
	}
	model, ok := filledIn(ctx, request.Config, &answer.Diagnostics, e.cannot("make"), fill)
	if ok {
		answer.Diagnostics.Append(answer.Private.SetKey(ctx, handleKey, stored)...)
		answer.Diagnostics.Append(answer.Result.Set(ctx, model)...)
	}
}

func (e *transient[M]) Close(
	ctx context.Context, request ephemeral.CloseRequest, answer *ephemeral.CloseResponse,
) {
	stored, diagnostics := request.Private.GetKey(ctx, handleKey)
	answer.Diagnostics.Append(diagnostics...)
	if len(stored) == 0 || answer.Diagnostics.HasError() {
		return
	}
	e.endStored(ctx, stored, &answer.Diagnostics)
}

// endStored ends the resource of a handle that Open stored as JSON.
func (e *transient[M]) endStored(ctx context.Context, stored []byte, to *diag.Diagnostics) {
	var handle map[string]string
	err := json.Unmarshal(stored, &handle)
	if err == nil {
		err = e.end(ctx, e.session, handle)
	}
	reportError(to, e.cannot("end"), err, nil)
}

// passingName is the name of a resource that lives as long as a run: a beginning and something
// random, because several runs may happen at once.
func passingName(beginning string) string {
	if beginning == "" {
		beginning = "terraform"
	}
	return fmt.Sprintf("%s %s", beginning, strings.ToLower(rand.Text()[:8]))
}

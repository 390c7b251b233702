package provider

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	shown "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Sets of texts, and texts that the service stores in one form. A configuration must use that form,
// because Terraform refuses a value that comes back different.

// shownTexts is a set of texts that a data source shows.
func shownTexts(description string) shown.SetAttribute {
	return shown.SetAttribute{
		Computed: true, ElementType: types.StringType, MarkdownDescription: description,
	}
}

func textSetOf(texts []string) types.Set {
	return setOf(types.StringType, texts, types.StringValue)
}

func textsIn(set types.Set) []string {
	return itemsIn(set, types.String.ValueString)
}

// setOf returns items as Terraform's set; value converts an item into a value of type kind.
func setOf[T any, V attr.Value](kind attr.Type, items []T, value func(T) V) types.Set {
	values := make([]attr.Value, len(items))
	for i, item := range items {
		values[i] = value(item)
	}
	return types.SetValueMust(kind, values)
}

// itemsIn returns the items of Terraform's set; item converts a value V into one.
func itemsIn[T any, V attr.Value](set types.Set, item func(V) T) []T {
	items := make([]T, 0, len(set.Elements()))
	for _, element := range set.Elements() {
		if value, ok := element.(V); ok {
			items = append(items, item(value))
		}
	}
	return items
}

// writtenAs accepts only texts in the form in which the service stores them. stored returns that
// form.
type writtenAs struct {
	what   string
	stored func(string) (string, error)
}

var _ validator.String = writtenAs{}

func (v writtenAs) Description(context.Context) string { return v.what }

func (v writtenAs) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v writtenAs) ValidateString(
	_ context.Context, request validator.StringRequest, answer *validator.StringResponse,
) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	text := request.ConfigValue.ValueString()
	stored, err := v.stored(text)
	switch {
	case err != nil:
		answer.Diagnostics.AddAttributeError(request.Path, "It is not "+v.what, err.Error())
	case stored != text:
		answer.Diagnostics.AddAttributeError(request.Path, "It is not "+v.what,
			fmt.Sprintf("The service stores %q as %q: write it that way.", text, stored))
	}
}

// mailAddress accepts a mail address in lower case.
func mailAddress() validator.String {
	return writtenAs{"a mail address in lower case", func(text string) (string, error) {
		name, domain, cut := strings.Cut(text, "@")
		if !cut || name == "" || domain == "" {
			return "", fmt.Errorf("%q has no name, @ and domain", text)
		}
		return strings.ToLower(strings.TrimSpace(text)), nil
	}}
}

// network accepts a network in CIDR notation (RFC 4632, 5952) without bits behind its prefix.
func network() validator.String {
	return writtenAs{"a network in CIDR notation", func(text string) (string, error) {
		prefix, err := netip.ParsePrefix(text)
		if single, alone := netip.ParseAddr(text); alone == nil {
			prefix, err = single.WithZone("").Prefix(single.BitLen())
		}
		if err != nil {
			return "", err
		}
		if prefix.Addr().Is4In6() {
			return "", fmt.Errorf("%q holds addresses of IPv4: write them as such", text)
		}
		return prefix.Masked().String(), nil
	}}
}

package provider

import (
	"errors"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"freshet/terraform/internal/api"
)

// reportError puts an error into diagnostics, at the attributes that the service's problem points
// to. A pointer into one of several items of a batch counts for the attribute of this resource.
func reportError(to *diag.Diagnostics, what string, err error, attributes map[string]attr.Value) {
	if err == nil {
		return
	}
	var problem *api.Problem
	if errors.As(err, &problem) {
		placed := 0
		for _, fieldError := range problem.Errors {
			if place, known := placeOf(fieldError.Pointer, attributes); known {
				to.AddAttributeError(place, what, fieldError.Detail+"\n\n"+err.Error())
				placed++
			}
		}
		if placed > 0 {
			return
		}
	}
	to.AddError(what, err.Error())
}

// placeOf turns a JSON pointer into the path of an attribute, and says whether there is one.
// Members of the API have the names of attributes; a member below an attribute that is a map is a
// key of it.
func placeOf(pointer string, attributes map[string]attr.Value) (path.Path, bool) {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if len(parts) > 2 && parts[0] == "items" {
		parts = parts[2:]
	}
	value, known := attributes[unescapePart(parts[0])]
	if !known {
		return path.Empty(), false
	}
	place := path.Root(unescapePart(parts[0]))
	if mapping, isMap := value.(interface{ Elements() map[string]attr.Value }); isMap &&
		len(parts) > 1 {
		key := unescapePart(strings.Join(parts[1:], "/"))
		if _, there := mapping.Elements()[key]; there {
			place = place.AtMapKey(key)
		}
	}
	return place, true
}

// unescapePart reads a part of a JSON pointer (RFC 6901).
func unescapePart(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
}

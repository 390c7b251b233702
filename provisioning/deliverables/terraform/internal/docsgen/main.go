// Command docsgen writes docs/ from the provider's schemas and examples/, in the layout that
// Terraform registries read: docs/index.md, docs/resources/, docs/data-sources/ and
// docs/ephemeral-resources/.
//
// usage, in provisioning/deliverables/terraform: go run ./internal/docsgen [-check]
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"freshet/terraform/internal/provider"
)

const folder = "docs"

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "write nothing; fail where a page would change")
	flag.Parse()
	pages, err := generatePages(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	if *check {
		err = comparePages(pages)
	} else {
		err = writePages(pages)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// generatePages returns the text of every page by its path below docs/.
func generatePages(ctx context.Context) (map[string]string, error) {
	server := providerserver.NewProtocol6(provider.New("docs")())()
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	for _, diagnostic := range schemas.Diagnostics {
		return nil, fmt.Errorf("%s: %s", diagnostic.Summary, diagnostic.Detail)
	}
	pages := map[string]string{"index.md": indexPage(schemas.Provider)}
	kinds := []struct {
		place, title string
		schemas      map[string]*tfprotov6.Schema
	}{
		{"resources", "Resource", schemas.ResourceSchemas},
		{"data-sources", "Data Source", schemas.DataSourceSchemas},
		{"ephemeral-resources", "Ephemeral Resource", schemas.EphemeralResourceSchemas},
	}
	for _, kind := range kinds {
		for name, schema := range kind.schemas {
			file := strings.TrimPrefix(name, "freshet_") + ".md"
			text, err := page(kind.place, kind.title, name, schema)
			if err != nil {
				return nil, err
			}
			pages[filepath.Join(kind.place, file)] = text
		}
	}
	return pages, nil
}

func indexPage(schema *tfprotov6.Schema) string {
	var text strings.Builder
	writeHeader(&text, "freshet Provider", schema)
	writeExample(&text, filepath.Join("provider", "provider.tf"), "terraform")
	writeAttributes(&text, schema)
	return text.String()
}

func page(place, title, name string, schema *tfprotov6.Schema) (string, error) {
	var text strings.Builder
	writeHeader(&text, name+" ("+title+")", schema)
	singular := strings.TrimSuffix(place, "s")
	file := filepath.Join(place, name, singular+".tf")
	if !writeExample(&text, file, "terraform") {
		return "", fmt.Errorf("examples/%s is missing", file)
	}
	writeAttributes(&text, schema)
	if place == "resources" {
		text.WriteString("\n## Import\n\n")
		if !writeExample(&text, filepath.Join(place, name, "import.sh"), "shell") {
			return "", fmt.Errorf("examples/%s/%s/import.sh is missing", place, name)
		}
	}
	return text.String(), nil
}

func writeHeader(text *strings.Builder, title string, schema *tfprotov6.Schema) {
	fmt.Fprintf(text, "<!-- Written by internal/docsgen from the schema and the examples. -->\n\n")
	fmt.Fprintf(text, "# %s\n\n%s\n", title, schema.Block.Description)
}

// writeExample adds the text of a file below examples/ and says whether there is one.
func writeExample(text *strings.Builder, file, language string) bool {
	content, err := os.ReadFile(filepath.Join("examples", file))
	if err != nil {
		return false
	}
	if language == "terraform" {
		text.WriteString("\n## Example\n\n")
	}
	fmt.Fprintf(text, "```%s\n%s\n```\n", language, strings.TrimSpace(string(content)))
	return true
}

// writeAttributes lists the attributes of a schema by whether they are required, optional or
// read-only, and then the attributes of those that are objects.
func writeAttributes(text *strings.Builder, schema *tfprotov6.Schema) {
	groups := []struct {
		title string
		has   func(*tfprotov6.SchemaAttribute) bool
	}{
		{"Required", func(a *tfprotov6.SchemaAttribute) bool { return a.Required }},
		{"Optional", func(a *tfprotov6.SchemaAttribute) bool { return a.Optional }},
		{"Read-only", func(a *tfprotov6.SchemaAttribute) bool { return a.Computed && !a.Optional }},
	}
	text.WriteString("\n## Schema\n")
	nested := []*tfprotov6.SchemaAttribute{}
	for _, group := range groups {
		chosen := chooseAttributes(schema.Block.Attributes, group.has)
		if len(chosen) == 0 {
			continue
		}
		fmt.Fprintf(text, "\n### %s\n\n", group.title)
		for _, attribute := range chosen {
			text.WriteString(line(attribute))
			if attribute.NestedType != nil {
				nested = append(nested, attribute)
			}
		}
	}
	for _, attribute := range nested {
		fmt.Fprintf(text, "\n### In `%s`\n\n", attribute.Name)
		for _, inner := range chooseAttributes(attribute.NestedType.Attributes, nil) {
			text.WriteString(line(inner))
		}
	}
}

func chooseAttributes(
	all []*tfprotov6.SchemaAttribute, has func(*tfprotov6.SchemaAttribute) bool,
) []*tfprotov6.SchemaAttribute {
	chosen := []*tfprotov6.SchemaAttribute{}
	for _, attribute := range all {
		if has == nil || has(attribute) {
			chosen = append(chosen, attribute)
		}
	}
	slices.SortFunc(chosen, func(a, b *tfprotov6.SchemaAttribute) int {
		return strings.Compare(a.Name, b.Name)
	})
	return chosen
}

func line(attribute *tfprotov6.SchemaAttribute) string {
	facts := []string{kindOf(attribute)}
	if attribute.Sensitive {
		facts = append(facts, "sensitive")
	}
	if attribute.WriteOnly {
		facts = append(facts, "write-only")
	}
	return fmt.Sprintf("- `%s` (%s) %s\n",
		attribute.Name, strings.Join(facts, ", "), attribute.Description)
}

func kindOf(attribute *tfprotov6.SchemaAttribute) string {
	if attribute.NestedType != nil {
		if attribute.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeList {
			return "list of objects"
		}
		return "object"
	}
	text := attribute.Type.String()
	text = strings.NewReplacer("tftypes.", "", "[", " of ", "]", "").Replace(text)
	return strings.ToLower(text)
}

// comparePages fails where a page differs, is missing, or belongs to nothing.
func comparePages(pages map[string]string) error {
	wrong := []string{}
	committed, err := readPages()
	if err != nil {
		return err
	}
	for file, text := range pages {
		if committed[file] != text {
			wrong = append(wrong, file)
		}
	}
	for file := range committed {
		if _, known := pages[file]; !known {
			wrong = append(wrong, file)
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("docs/ is out of date (%s): in provisioning/deliverables/terraform, run "+
			"go run ./internal/docsgen", strings.Join(wrong, ", "))
	}
	return nil
}

func readPages() (map[string]string, error) {
	pages := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		pages[name] = string(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read docs/: %w", err)
	}
	return pages, nil
}

func writePages(pages map[string]string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for file, text := range pages {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-queue/sluice/internal/docpart"
	"github.com/sluice-queue/sluice/search"
)

// update writes the generated files: go test -run TestDocs -update.
var update = flag.Bool("update", false, "write openapi.json, and the generated part of docs/api.md")

const (
	moduleRoot = "github.com/sluice-queue/sluice"
	moduleDir  = "../.."
)

// TestDocsOfTheAPI compares openapi.json and docs/api.md with the routes. It also compares them with the comments on
// types of requests and answers.
func TestDocsOfTheAPI(t *testing.T) {
	t.Parallel()
	api := New(nil, Options{})
	described := newHuma(http.NewServeMux())
	for _, describe := range api.describe {
		describe(described)
	}
	listsAreNeverNull(described.OpenAPI())
	addComments(t, described.OpenAPI())
	text, err := json.MarshalIndent(described.OpenAPI(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update && !bytes.Equal(text, openapi) {
		if err := os.WriteFile("openapi.json", text, 0o600); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(text, openapi) {
		t.Error("openapi.json differs from the code; run `make docs`")
	}
	docpart.Check(t, *update,
		docpart.Part{Path: moduleDir + "/docs/api.md", Name: "routes", Text: reference(api)},
		docpart.Part{Path: moduleDir + "/docs/guide/find.md", Name: "fields", Text: fieldsTable()},
	)
}

// fieldsTable renders the table of fields that filters know.
func fieldsTable() string {
	text := "| field | means | example | indexed |\n| --- | --- | --- | --- |\n"
	for _, f := range search.Fields() {
		indexed := ""
		if f.Indexed {
			indexed = "yes"
		}
		text += fmt.Sprintf("| `%s` | %s | `%s` | %s |\n", f.Name, f.Meaning, f.Example, indexed)
	}
	return text
}

// addComments adds the comments in the source to the schemas. Each property needs a comment.
func addComments(t *testing.T, api *huma.OpenAPI) {
	t.Helper()
	comments := make(map[string]map[string]string) // by folder, then by Type.Field
	schemas := api.Components.Schemas
	for name, schema := range schemas.Map() {
		typ := schemas.TypeFromRef(schemaRoot + name)
		of := func(typ reflect.Type, field string) string {
			folder, ours := strings.CutPrefix(typ.PkgPath(), moduleRoot)
			if !ours {
				return ""
			}
			if comments[folder] == nil {
				comments[folder] = commentsIn(t, filepath.Join(moduleDir, folder))
			}
			return comments[folder][typ.Name()+"."+field]
		}
		schema.Description = strings.Replace(of(typ, ""), typ.Name(), name, 1)
		for property, field := range fieldsOf(typ) {
			p := schema.Properties[property]
			if p == nil || p.Description != "" {
				continue
			}
			if p.Description = of(field.owner, field.name); p.Description == "" {
				t.Errorf("%s.%s (%s of %s) has no comment", field.owner, field.name, property, name)
			}
		}
	}
}

// ownedField is a field and the type that declares it.
type ownedField struct {
	owner reflect.Type
	name  string
}

// fieldsOf maps the JSON names of a type's fields to the fields, including those of embedded types.
func fieldsOf(typ reflect.Type) map[string]ownedField {
	all := make(map[string]ownedField)
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct:
			for inner, f := range fieldsOf(field.Type) {
				all[inner] = f
			}
		case name != "" && name != "-":
			all[name] = ownedField{typ, field.Name}
		}
	}
	return all
}

var (
	docLink   = regexp.MustCompile(`\[\*?([A-Za-z.]+)\]`)
	manyBlank = regexp.MustCompile(`\s+`)
)

// commentsIn reads the comments of a package's types and fields. Their keys are Type. and Type.Field. A field without a
// comment takes the comment of the field above it.
func commentsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			decl, is := n.(*ast.GenDecl)
			if !is || decl.Tok != token.TYPE {
				return true
			}
			for _, spec := range decl.Specs {
				typ := spec.(*ast.TypeSpec)
				all[typ.Name.Name+"."] = plain(decl.Doc, typ.Doc)
				fields, is := typ.Type.(*ast.StructType)
				if !is {
					continue
				}
				last := ""
				for _, field := range fields.Fields.List {
					if own := plain(field.Doc, field.Comment); own != "" {
						last = own
					}
					for _, name := range field.Names {
						all[typ.Name.Name+"."+name.Name] = last
					}
				}
			}
			return false
		})
	}
	return all
}

// plain returns the first comment that has text as one line, without links.
func plain(groups ...*ast.CommentGroup) string {
	for _, group := range groups {
		if text := group.Text(); text != "" {
			return strings.TrimSpace(manyBlank.ReplaceAllString(docLink.ReplaceAllString(text, "$1"), " "))
		}
	}
	return ""
}

// reference renders the routes as tables for people, one per group.
func reference(a *API) string {
	var text strings.Builder
	var groups []string
	for _, r := range a.routes {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	for _, group := range groups {
		fmt.Fprintf(&text, "### %s\n\n| request | name | does | roles |\n| --- | --- | --- | --- |\n", strings.ToUpper(group[:1])+group[1:])
		for _, r := range a.routes {
			if r.Group != group {
				continue
			}
			does := strings.ToUpper(r.Summary[:1]) + r.Summary[1:] + "."
			if r.Text != "" {
				does += " " + r.Text
			}
			var roles []string
			for _, role := range rolesOf(r.Needs) {
				roles = append(roles, string(role))
			}
			fmt.Fprintf(&text, "| `%s %s` | `%s` | %s | %s |\n", r.Method, r.Path, r.Name, does, strings.Join(roles, ", "))
		}
		text.WriteString("\n")
	}
	return strings.TrimSpace(text.String())
}

// TestTheReferenceHasNoSecondNames refuses two routes with the same name, because clients could not tell them apart.
func TestTheReferenceHasNoSecondNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, r := range Routes() {
		if other := seen[r.Name]; other != "" {
			t.Errorf("%s %s has the name %s, as %s", r.Method, r.Path, r.Name, other)
		}
		seen[r.Name] = r.Method + " " + r.Path
		if r.Needs == 0 || r.Group == "" || r.Summary == "" {
			t.Errorf("%s %s lacks its rights, group or summary", r.Method, r.Path)
		}
	}
}

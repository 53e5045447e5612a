package httpapi

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/stat"
)

// openapi.json is made of the routes and of the comments in the source, by `make docs`.
//
//go:embed openapi.json
var openapi []byte

// OpenAPI returns the description of the API, by OpenAPI 3.1. A route's x-sluice-roles are the roles that may use it.
func OpenAPI() []byte { return slices.Clone(openapi) }

// schemaRoot begins references to schemas.
const schemaRoot = "#/components/schemas/"

// newHuma makes the part of the API that reads requests, checks them, and writes answers in JSON.
func newHuma(mux humago.Mux) huma.API {
	schemas := huma.NewMapRegistry(schemaRoot, schemaName)
	for from, to := range aliases {
		schemas.RegisterTypeAlias(from, to)
	}
	return humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: "Sluice", Version: "1", Description: "The HTTP API of Sluice. docs/api.md is the same for people."},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token": {Type: "http", Scheme: "bearer", Description: "a token of `sluice tokens`; without a login, as on loopback, none"},
			}},
			Security: []map[string][]string{{"token": {}}, {}},
		},
		Formats:                      map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{toProblem},
	})
}

// jsonFormat reads and writes JSON. Write errors are ignored, because the client may be gone.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, value any) error {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // payloads stay as they are
		err := encoder.Encode(value)
		if err == nil {
			_, _ = w.Write(text.Bytes())
		}
		return err
	},
	Unmarshal: json.Unmarshal,
}

// toProblem replaces huma's errors by ours.
func toProblem(ctx huma.Context, _ string, value any) (any, error) {
	c := callOf(ctx.Context())
	switch refused := value.(type) {
	case *huma.ErrorModel:
		p := fromHuma(c, refused)
		c.noteRefusal(p)
		return p, nil
	case *Problem:
		c.noteRefusal(refused)
	}
	return value, nil
}

// aliases are types that JSON has in another form than their fields.
var aliases = map[reflect.Type]reflect.Type{
	reflect.TypeFor[huma.ErrorModel]():   reflect.TypeFor[Problem](),
	reflect.TypeFor[sluice.Rate]():       reflect.TypeFor[string](),
	reflect.TypeFor[stat.Histogram]():    reflect.TypeFor[map[string]int64](),
	reflect.TypeFor[forecast.Forecast](): reflect.TypeFor[asCommand](),
	reflect.TypeFor[schedule.Schedule](): reflect.TypeFor[scheduleBody](),
	reflect.TypeFor[alert.Rule]():        reflect.TypeFor[ruleView](),
}

// asCommand is an object that the command line shows with -o json, and that has no schema.
type asCommand struct{}

// Schema describes the object.
func (asCommand) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "as the command shows it with -o json"}
}

// schemaName names the schema of a type: the name of the type, after that of its package unless that is sluice, wire or
// this package.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	folder := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
	if folder == "" || folder == "sluice" || folder == "httpapi" || folder == "wire" || strings.EqualFold(name, folder) {
		return name
	}
	return strings.ToUpper(folder[:1]) + folder[1:] + name
}

// schemaOf returns the reference to the schema of a type.
func schemaOf[T any](of huma.API) *huma.Schema {
	return of.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// listsAreNeverNull completes a description: a list is never null.
func listsAreNeverNull(api *huma.OpenAPI) {
	for _, schema := range api.Components.Schemas.Map() {
		neverNull(schema)
	}
}

// neverNull makes the lists in a schema lists always.
func neverNull(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	neverNull(s.Items)
	for _, property := range s.Properties {
		neverNull(property)
	}
	if more, is := s.AdditionalProperties.(*huma.Schema); is {
		neverNull(more)
	}
}

// about adds the routes that describe the API.
func (a *API) about() {
	addRaw(a, Route{
		Method: "GET", Path: "/openapi.json", Name: "get-openapi", Group: "about", Summary: "describe the API",
		Needs: anyRight, scope: ofJobs,
	}, func(_ huma.API, op *huma.Operation) {
		op.Responses["200"] = &huma.Response{Description: "the description, by OpenAPI 3.1", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}}}
	}, func(w http.ResponseWriter, _ *http.Request, _ *call) error {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openapi)
		return nil
	})
	add(a, Route{
		Method: "GET", Path: "/whoami", Name: "whoami", Group: "about", Summary: "show the caller",
		Text: "Shows how the audit names the caller, and the caller's rights.", Needs: anyRight, scope: ofJobs,
	}, func(_ context.Context, c *call, _ *nothing) (callerView, error) {
		return callerView{Name: c.caller.Name, By: c.by, Role: c.caller.Role, Queues: c.caller.Queues, Tenants: c.caller.Tenants, Login: !a.options.NoLogin}, nil
	})
	add(a, Route{
		Method: "GET", Path: "/fields", Name: "list-fields", Group: "about", Summary: "list the fields that filters can compare", Needs: anyRight, scope: ofJobs,
	}, func(context.Context, *call, *nothing) (filterView, error) { return filterView{search.Fields()}, nil })
}

// anyRight is for routes that everybody may use who has a login.
const anyRight = access.Follow | access.Look

// callerView is the answer to whoami.
type callerView struct {
	// Name is the name of the token. By is how the audit names the caller.
	Name string `json:"name"`
	By   string `json:"by"`
	// Role names the caller's rights.
	Role access.Role `json:"role"`
	// Queues and Tenants are those that the caller knows. Missing: all.
	Queues  []string `json:"queues,omitempty"`
	Tenants []string `json:"tenants,omitempty"`
	// Login says that callers need a token. On loopback nobody does, unless the server was told so.
	Login bool `json:"login"`
}

// filterView lists the fields of filters.
type filterView struct {
	// Fields are the properties of jobs that a filter can compare.
	Fields []search.Field `json:"fields"`
}

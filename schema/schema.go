// Package schema checks payloads against JSON Schemas, before jobs are enqueued and before they run.
//
// Begin with [New]: give the [Checker] to sluice.ClientOptions and worker.Options as PayloadChecker. A queue's
// setting payload_schema holds the schema.
//
// Programs that do not import this package do not link a schema library. Without a checker, enqueues into a
// queue with a payload_schema fail, and workers bury its jobs. Next, read docs/settings.md.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Checker checks payloads against JSON Schemas, and compiles each schema once. Schemas without $schema are of
// draft 2020-12; formats are asserted; references outside of the schema are refused. Many goroutines may use a
// Checker at once.
type Checker struct {
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

// New makes a checker.
func New() *Checker { return &Checker{compiled: make(map[string]*jsonschema.Schema)} }

// maxCompiled is the most compiled schemas kept, so that frequent changes of settings do not fill the memory.
const maxCompiled = 1000

// Compile returns an error if a text is not a JSON Schema.
func (c *Checker) Compile(schema string) error {
	_, err := c.schema(schema)
	return err
}

// Check returns an error if a payload does not match a schema. The error names the places that do not match and
// the expectation, but none of the payload's values.
func (c *Checker) Check(schema string, payload []byte) error {
	compiled, err := c.schema(schema)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return err
	}
	var mismatch *jsonschema.ValidationError
	if err := compiled.Validate(value); errors.As(err, &mismatch) {
		return errors.New(strings.Join(describe(mismatch), "; "))
	} else if err != nil {
		return err
	}
	return nil
}

func (c *Checker) schema(text string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if compiled := c.compiled[text]; compiled != nil {
		return compiled, nil
	}
	compiled, err := compile(text)
	if err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(c.compiled) >= maxCompiled {
		clear(c.compiled)
	}
	c.compiled[text] = compiled
	return compiled, nil
}

func compile(text string) (*jsonschema.Schema, error) {
	const name = "sluice:payload_schema"
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// noLoader keeps a schema from reading files or the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside of the schema; put it under $defs", url)
}

// describe lists the places that do not match, without the payload's values.
func describe(e *jsonschema.ValidationError) []string {
	var out []string
	for _, cause := range e.Causes {
		out = append(out, describe(cause)...)
	}
	if len(e.Causes) > 0 {
		slices.Sort(out)
		return slices.Compact(out)
	}
	place := "/" + strings.Join(e.InstanceLocation, "/")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return []string{fmt.Sprintf("%s lacks %s", place, strings.Join(k.Missing, ", "))}
	case *kind.AdditionalProperties:
		return []string{fmt.Sprintf("%s has %s, which the schema does not know", place, strings.Join(k.Properties, ", "))}
	case *kind.Type:
		return []string{fmt.Sprintf("%s is %s, want %s", place, k.Got, strings.Join(k.Want, " or "))}
	}
	return []string{fmt.Sprintf("%s breaks %q", place, strings.Join(e.ErrorKind.KeywordPath(), "/"))}
}

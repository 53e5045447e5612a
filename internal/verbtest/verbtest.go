// Package verbtest calls every method of a store, for tests of rules that all methods must keep.
// One rule is that each method refuses a schema that is too new; another, that a panic becomes an
// error.
//
// Begin with [Call] for a store, or [CallAny] for any value. Both fill in the arguments and return
// the error of each method by name, so new methods are tested at once.
//
// Read next: package store/storetest for the rules of single methods.
package verbtest

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/operation"
)

// Call calls each method of a store except Close and Watch with filled arguments, and returns the
// error of each by name. If a method panics, Call calls recovered, if given, and leaves the method
// out of the result.
func Call(ctx context.Context, store sluice.Store, recovered func(name string, panicked any)) map[string]error {
	return callAll(ctx, store, reflect.TypeFor[sluice.Store](), recovered)
}

// CallAny is [Call] for the methods of any value that take a context and return an error or errors.
// Of several errors, the first counts.
func CallAny(ctx context.Context, of any, recovered func(name string, panicked any)) map[string]error {
	return callAll(ctx, of, reflect.TypeOf(of), recovered)
}

func callAll(ctx context.Context, of any, as reflect.Type, recovered func(string, any)) map[string]error {
	errs := make(map[string]error)
	for method := range as.Methods() {
		if m := reflect.ValueOf(of).MethodByName(method.Name); method.Name != "Close" && method.Name != "Watch" && fails(m.Type()) {
			call(ctx, m, method.Name, errs, recovered)
		}
	}
	return errs
}

// fails reports whether a method takes a context and returns an error or errors.
func fails(method reflect.Type) bool {
	in, out := method.NumIn(), method.NumOut()
	return in > 0 && method.In(0) == reflect.TypeFor[context.Context]() && out > 0 &&
		(method.Out(out-1) == reflect.TypeFor[error]() || method.Out(out-1) == reflect.TypeFor[[]error]())
}

func call(ctx context.Context, method reflect.Value, name string, errs map[string]error, recovered func(string, any)) {
	if recovered != nil {
		defer func() {
			if panicked := recover(); panicked != nil {
				recovered(name, panicked)
			}
		}()
	}
	arguments := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < method.Type().NumIn(); i++ {
		argument := reflect.New(method.Type().In(i)).Elem()
		fill(argument)
		arguments = append(arguments, argument)
	}
	results := method.Call(arguments)
	last := results[len(results)-1].Interface()
	if each, are := last.([]error); are && len(each) > 0 {
		last = each[0]
	}
	err, _ := last.(error)
	errs[name] = err
}

// samples are values of types that need particular values.
var samples = map[reflect.Type]any{
	reflect.TypeFor[time.Time]():       time.Unix(1e9, 0),
	reflect.TypeFor[time.Duration]():   time.Second,
	reflect.TypeFor[json.RawMessage](): json.RawMessage(`{}`),
	reflect.TypeFor[sluice.State]():    sluice.StateCompleted,
	reflect.TypeFor[sluice.Event]():    sluice.EventComplete,
	reflect.TypeFor[sluice.Settings](): sluice.DefaultSettings(),
	reflect.TypeFor[sluice.Object]():   audit.ObjectTier,
	reflect.TypeFor[operation.State](): operation.StateRunning,
}

// fill returns a value that is not zero, so that the method has something to do.
func fill(v reflect.Value) {
	if sample, has := samples[v.Type()]; has {
		v.Set(reflect.ValueOf(sample))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return zeros(v.Type()) }))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	}
}

// zeros are the results of a function that does nothing.
func zeros(of reflect.Type) []reflect.Value {
	results := make([]reflect.Value, of.NumOut())
	for i := range results {
		results[i] = reflect.Zero(of.Out(i))
	}
	return results
}

// Package verbtest calls every verb of a store, for tests of what must hold for all of them.
package verbtest

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/sluice-queue/sluice"
)

// Call calls each method of a store but Close and Watch with arguments that are filled in, and returns the error of each
// by name. A method that panics calls recovered, if there is one, and is not in the result.
func Call(ctx context.Context, store sluice.Store, recovered func(name string, panicked any)) map[string]error {
	errs := make(map[string]error)
	for method := range reflect.TypeFor[sluice.Store]().Methods() {
		if method.Name != "Close" && method.Name != "Watch" {
			call(ctx, reflect.ValueOf(store).MethodByName(method.Name), method.Name, errs, recovered)
		}
	}
	return errs
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
	err, _ := results[len(results)-1].Interface().(error)
	errs[name] = err
}

// samples are values of types that have rules of their own.
var samples = map[reflect.Type]any{
	reflect.TypeFor[time.Time]():       time.Unix(1e9, 0),
	reflect.TypeFor[time.Duration]():   time.Second,
	reflect.TypeFor[json.RawMessage](): json.RawMessage(`{}`),
	reflect.TypeFor[sluice.State]():    sluice.StateCompleted,
	reflect.TypeFor[sluice.Event]():    sluice.EventComplete,
	reflect.TypeFor[sluice.Settings](): sluice.DefaultSettings(),
	reflect.TypeFor[sluice.Object]():   sluice.ObjectTier,
}

// fill gives a value that is not zero, so that the verb has something to do.
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
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	}
}

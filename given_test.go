package sluice_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/sluice-queue/sluice"
)

// A caller that forgot an argument must hear that from whatever it calls first, not lose a job or panic.
func TestEveryMethodOfWhatWasNotGivenSaysThatItIsMissing(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]any{
		"store":       sluice.GivenStore(nil),
		"transaction": sluice.GivenEnqueuer(nil),
		"engine":      sluice.GivenEngine(nil),
	} {
		value := reflect.ValueOf(given)
		for i := range value.NumMethod() {
			method := value.Type().Method(i).Name
			for _, err := range errorsOf(value.Method(i)) {
				if invalid := (*sluice.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != name {
					t.Errorf("%s of a missing %s: %v, want an InvalidError that names the %s", method, name, err, name)
				}
			}
		}
	}
}

// errorsOf calls a method with arguments that are empty, but for slices, which have one item, and gives the errors it returned.
func errorsOf(method reflect.Value) []error {
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		switch of := method.Type().In(i); {
		case of == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(context.Background()))
		case of.Kind() == reflect.Slice:
			args = append(args, reflect.MakeSlice(of, 1, 1))
		default:
			args = append(args, reflect.Zero(of))
		}
	}
	var errs []error
	results := method.Call(args)
	switch last := results[len(results)-1].Interface().(type) {
	case []error:
		errs = last
	case error:
		errs = []error{last}
	}
	if len(errs) == 0 {
		errs = []error{nil}
	}
	return errs
}

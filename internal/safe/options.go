package safe

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/sluice-queue/sluice"
)

// Options returns a sluice.ErrInvalid for the first wrong field of a struct of options. Wrong are a
// negative number or duration, and a nil entry of a map or slice. The fields in mayBeNegative may
// be negative.
func Options(options any, mayBeNegative ...string) error {
	of := reflect.ValueOf(options)
	for i := range of.NumField() {
		name := of.Type().Field(i).Name
		switch field := of.Field(i); field.Kind() {
		case reflect.Int, reflect.Int64:
			if field.Int() < 0 && !slices.Contains(mayBeNegative, name) {
				return &sluice.InvalidError{Field: "option " + name, Rule: fmt.Sprintf("%v must be 0 (the default) or more", field)}
			}
		case reflect.Map, reflect.Slice:
			if key, found := nilEntry(field); found {
				return &sluice.InvalidError{Field: "option " + name, Rule: fmt.Sprintf("%v is nil", key)}
			}
		}
	}
	return nil
}

// nilEntry finds a nil entry in a map or a slice of interfaces or functions.
func nilEntry(of reflect.Value) (key reflect.Value, found bool) {
	if kind := of.Type().Elem().Kind(); kind != reflect.Interface && kind != reflect.Func {
		return key, false
	}
	for at, entry := range of.Seq2() {
		if entry.IsNil() {
			return at, true
		}
	}
	return key, false
}

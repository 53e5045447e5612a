package safe

import (
	"fmt"
	"reflect"
	"slices"
)

// Options says which field of a struct of options is wrong: a number or a duration below zero, but for those that may be
// negative, or an entry of a map that is nil.
func Options(options any, mayBeNegative ...string) error {
	of := reflect.ValueOf(options)
	for i := range of.NumField() {
		name := of.Type().Field(i).Name
		switch field := of.Field(i); field.Kind() {
		case reflect.Int, reflect.Int64:
			if field.Int() < 0 && !slices.Contains(mayBeNegative, name) {
				return fmt.Errorf("option %s: %v must be 0 (the default) or more", name, field)
			}
		case reflect.Map:
			if key, found := nilEntry(field); found {
				return fmt.Errorf("option %s: %v is nil", name, key)
			}
		}
	}
	return nil
}

// nilEntry finds an entry of a map of interfaces that has no value.
func nilEntry(of reflect.Value) (key reflect.Value, found bool) {
	if of.Type().Elem().Kind() != reflect.Interface {
		return key, false
	}
	for entries := of.MapRange(); entries.Next(); {
		if entries.Value().IsNil() {
			return entries.Key(), true
		}
	}
	return key, false
}

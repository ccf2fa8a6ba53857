package gateway_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/sidecar"
)

// TestAllOfConfigCanBeNamed: a program of another module cannot import what is internal, and can name each such type that
// the configuration of a gateway or a sidecar leads to as one of this package.
func TestAllOfConfigCanBeNamed(t *testing.T) {
	named := map[reflect.Type]bool{
		reflect.TypeFor[gateway.Registry](): false, reflect.TypeFor[gateway.Meter](): false,
		reflect.TypeFor[gateway.Keys](): false, reflect.TypeFor[gateway.Hosts](): false, reflect.TypeFor[gateway.Budget](): false,
	}
	seen := map[reflect.Type]bool{}
	var visit func(path string, of reflect.Type)
	visit = func(path string, of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		if strings.Contains(of.PkgPath(), "/topsail/internal/") {
			if _, can := named[of]; !can {
				t.Errorf("%s is of %v, which another module cannot name: gateway/named.go has the others", path, of)
			}
			named[of] = true
			return // what is in it is its own
		}
		switch of.Kind() {
		case reflect.Struct:
			for field := range of.Fields() {
				if field.IsExported() {
					visit(path+"."+field.Name, field.Type)
				}
			}
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Chan:
			visit(path, of.Elem())
			if of.Kind() == reflect.Map {
				visit(path, of.Key())
			}
		case reflect.Func:
			for in := range of.Ins() {
				visit(path, in)
			}
			for out := range of.Outs() {
				visit(path, out)
			}
		case reflect.Interface:
			for method := range of.Methods() {
				visit(path+"."+method.Name, method.Type)
			}
		default: // it leads to no other type
		}
	}
	visit("gateway.Config", reflect.TypeFor[gateway.Config]())
	visit("sidecar.Config", reflect.TypeFor[sidecar.Config]())
	for of, used := range named {
		if !used {
			t.Errorf("no configuration leads to %v any more: remove it from gateway/named.go and from this list", of)
		}
	}
}

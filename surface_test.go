package sluice_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A user must be able to learn the root package in an hour. A feature belongs in a package of its own, with a port of
// its own.
const (
	mostRootNames     = 170
	mostRootFiles     = 28
	mostRootLines     = 4500
	mostClientMethods = 28
	mostStoreMethods  = 32
)

func TestTheRootStaysSmall(t *testing.T) {
	t.Parallel()
	root := readRoot(t)
	for _, c := range []struct {
		what      string
		got, most int
	}{
		{"exported names", len(root.names), mostRootNames},
		{"files without tests", root.files, mostRootFiles},
		{"lines without tests", root.lines, mostRootLines},
		{"methods of Client", root.clientMethods, mostClientMethods},
		{"methods that a store must have", root.storeMethods(t, "Store"), mostStoreMethods},
	} {
		if c.got > c.most {
			t.Errorf("the root has %d %s, at most %d: put a feature into a package of its own", c.got, c.what, c.most)
		}
		if c.got == 0 {
			t.Errorf("no %s were found", c.what)
		}
	}
}

// surface is the part of package sluice that users see.
type surface struct {
	names         []string
	files, lines  int
	clientMethods int
	interfaces    map[string]*ast.InterfaceType
}

func readRoot(t *testing.T) surface {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	root := surface{interfaces: make(map[string]*ast.InterfaceType)}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		root.files++
		root.lines += strings.Count(string(text), "\n")
		for _, decl := range file.Decls {
			root.add(decl)
		}
	}
	return root
}

func (s *surface) add(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		switch {
		case !d.Name.IsExported():
		case d.Recv == nil:
			s.names = append(s.names, d.Name.Name)
		case receiverName(d) == "Client":
			s.clientMethods++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			s.addSpec(spec)
		}
	}
}

func (s *surface) addSpec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			s.names = append(s.names, spec.Name.Name)
		}
		if port, ok := spec.Type.(*ast.InterfaceType); ok {
			s.interfaces[spec.Name.Name] = port
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				s.names = append(s.names, name.Name)
			}
		}
	}
}

// storeMethods counts the methods of an interface, with those of the interfaces that it embeds.
func (s *surface) storeMethods(t *testing.T, name string) (n int) {
	t.Helper()
	port := s.interfaces[name]
	if port == nil {
		t.Fatalf("there is no interface %s", name)
	}
	for _, field := range port.Methods.List {
		if embedded, ok := field.Type.(*ast.Ident); ok {
			n += s.storeMethods(t, embedded.Name)
			continue
		}
		n += len(field.Names)
	}
	return n
}

func receiverName(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	name, ok := kind.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}

// Command typecheck checks that packages compile for other systems, without compiling them: it reads the source of all that
// they import, and of that only what they can see. Compiling it takes minutes for each system.
//
//	typecheck FOLDER PACKAGE OS/ARCH…
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: typecheck FOLDER PACKAGE OS/ARCH…")
		os.Exit(2)
	}
	for _, system := range os.Args[3:] {
		if err := check(os.Args[1], os.Args[2], system); err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", system, err)
			os.Exit(1)
		}
		fmt.Println(os.Args[2], "compiles for", system)
	}
}

func check(folder, name, system string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	goos, arch, found := strings.Cut(system, "/")
	if !found {
		return errors.New("a system is OS/ARCH")
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax, Dir: folder, Env: append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0"),
		ParseFile: func(files *token.FileSet, path string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(path, folder+string(filepath.Separator)) {
				dropBodies(file)
			}
			return file, err
		},
	}, name)
	if err != nil {
		return err
	}
	var faults []error
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, fault := range p.Errors {
			if ours(fault, folder) {
				faults = append(faults, fault)
			}
		}
	})
	if len(loaded) == 0 {
		faults = append(faults, fmt.Errorf("there is no package %s", name))
	}
	return errors.Join(faults...)
}

// ours reports whether a fault is not one of dropping bodies: an import of another module that only a body used.
func ours(fault packages.Error, folder string) bool {
	return strings.HasPrefix(fault.Pos, folder) || fault.Kind == packages.ListError
}

// dropBodies leaves of functions what others see of them.
func dropBodies(file *ast.File) {
	for _, declared := range file.Decls {
		if function, is := declared.(*ast.FuncDecl); is {
			function.Body = nil
		}
	}
}

package giventest_test

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// mayBeNil reports whether a function has a parameter of which nil is a likely mistake: a port, a handler or a
// function.
func mayBeNil(f *ast.FuncDecl) bool {
	for _, parameter := range f.Type.Params.List {
		kind := strings.TrimPrefix(types.ExprString(parameter.Type), "sluice.")
		if kind == "testing.TB" {
			return false // a test helper fails the test instead
		}
		if _, is := parameter.Type.(*ast.FuncType); is {
			return true
		}
		if slices.Contains([]string{"Store", "Engine", "Enqueuer", "client.Client", "*pgxpool.Pool", "*sql.DB", "pgx.Tx", "*sql.Tx", "Tx", "http.Handler", "slog.Handler", "Handler[T]", "Func[T]"}, kind) && f.Name.Name != "Scrubs" {
			return true
		}
	}
	return false
}

package scrub_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// harmlessForm makes texts without secrets.
type harmlessForm struct {
	family   string
	draws    int
	make     func(r *rand.Rand) string
	patterns []string // the patterns that make takes in turn, if it has patterns
}

// pattern names the pattern of a draw.
func (f harmlessForm) pattern(draw int) string {
	if len(f.patterns) == 0 {
		return strconv.Itoa(draw)
	}
	return f.patterns[draw%len(f.patterns)]
}

// oneOf makes a form that takes each of some patterns in turn. In a pattern, {n} stands for a number, {h} for
// hexadecimal digits, {w} for a word and {u} for a UUID.
func oneOf(family string, patterns ...string) harmlessForm {
	next := 0
	return harmlessForm{family, 2 * len(patterns), func(r *rand.Rand) string {
		text := patterns[next%len(patterns)]
		next++
		for strings.Contains(text, "{n}") {
			text = strings.Replace(text, "{n}", fmt.Sprint(10+r.IntN(99990)), 1)
		}
		for strings.Contains(text, "{N}") {
			text = strings.Replace(text, "{N}", fmt.Sprint(1000000+r.IntN(8999999)), 1)
		}
		for strings.Contains(text, "{h}") {
			text = strings.Replace(text, "{h}", drawn(r, hexes, 40), 1)
		}
		for strings.Contains(text, "{w}") {
			text = strings.Replace(text, "{w}", drawn(r, lower, 4+r.IntN(8)), 1)
		}
		for strings.Contains(text, "{u}") {
			text = strings.Replace(text, "{u}", uuid(r), 1)
		}
		return text
	}, patterns}
}

func uuid(r *rand.Rand) string {
	h := drawn(r, hexes, 32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

func harmlessForms() []harmlessForm {
	return append([]harmlessForm{
		{family: "hex dump", draws: 20, make: func(r *rand.Rand) string {
			return strings.TrimSpace(hex.Dump([]byte(drawn(r, alnum+"\x00\x01\xfe ", 16+r.IntN(48)))))
		}},
		{family: "hex pairs", draws: 20, make: func(r *rand.Rand) string {
			var pairs []string
			for range 6 + r.IntN(16) {
				pairs = append(pairs, drawn(r, hexes, 2))
			}
			return strings.Join(pairs, []string{":", " ", "-"}[r.IntN(3)])
		}},
		{family: "xxd", draws: 10, make: func(r *rand.Rand) string {
			var fours []string
			for range 8 {
				fours = append(fours, drawn(r, hexes, 4))
			}
			return "00000010: " + strings.Join(fours, " ") + "  ........"
		}},
		{family: "figures", draws: 20, make: func(r *rand.Rand) string {
			var row []string
			for range 4 + r.IntN(6) {
				row = append(row, fmt.Sprint(r.IntN(100000)))
			}
			return strings.Join(row, []string{" ", "\t", ", ", "  "}[r.IntN(4)])
		}},
	}, harmlessPatterns()...)
}

func harmlessPatterns() []harmlessForm {
	return []harmlessForm{
		oneOf("paths", "/users/{n}/orders", "GET /users/{n}/orders/{n}", "/srv/app1/bin/run", "PWD=/srv/app1", "OLDPWD=/var/lib/{w}", "open /etc/{w}/conf.d/x.yaml: no such file or directory", "/usr/local/go/src/net/http/server.go:2136",
			"/api/v1/users/{n}", "C:\\Program Files\\app\\bin", "/home/runner/work/x", "/var/run/secrets/kubernetes.io/serviceaccount/token", "password_file=/run/secrets/db", "token_path: /var/lib/app/token1", "https://example.com/home/page{n}",
			"https://example.com/users/{w}/posts", "s3://bucket/{w}/{n}.parquet", "./scripts/deploy.sh", "secretName: db-creds-{n}", "--password-file /run/pw1", "../secret/{w}.go:12"),
		oneOf("figures", "total_tokens={N}", "max_tokens=4096", "tokens: {n}", "prompt_tokens={n} completion_tokens={n}", "token_count: {N}", "fencing_token={N}", "token_bucket_size=1000000", "password_attempts={n}",
			"password_length=12", "secret_version=17", "tokens_per_second=123456", "api_key_count=3", "session_count={n}", "token_ttl=15m30s", "tokens remaining: {N}", "sluice_tokens_total{queue=\"mail\"} {N}",
			"http_requests_total{code=\"200\",method=\"post\"} 1027 1395066363000", "process_cpu_seconds_total 4.20072246e+06", "p99=123.456ms n={N}", "size={N} bytes=18446744073709551615", "elapsed=1.234567891s", "score=0.4532015112830366"),
		oneOf("times", "2026-07-01T12:34:56.789Z", "2026-07-01 12:34:56.789123456 +0200 CEST", "1751373296789", "1751373296789123", "1751373296789123456", "12:34:56", "Jul  1 12:34:56 host app[{n}]: started", "20260701T123456Z",
			"Tue, 01 Jul 2026 12:34:56 GMT", "took 1h23m45.678s", "[01/Jul/2026:12:34:56 +0000]", "2026/07/01 12:34:56 listening"),
		oneOf("ids", "{u}", "request_id={u}", "job {u} failed", "trace_id={h}", "commit {h}", "sha256:{h}{h}", "etag \"{h}\"", "id=01J1ZQ{n}ABCDEFGHJK", "order-{n}", "order {N}-{n}", "session_id={u}", "span_id=00f067aa0ba902b7",
			"traceparent: 00-{h}-00f067aa0ba902b7-01", "image: nginx@sha256:{h}{h}", "docker pull registry.example.com/app:v1.2.3", "?key=order-{N}", "/v1/jobs?key=order-{n}&state=failed", "code={n}", "?code=404&page=2", "key=user:{n}",
			"idempotency_key=order-{n}", "ticket ABC-{n}", "h1:{w}", "pid={n} uid=1000", "cursor={n}", "mac 00:1b:44:11:3a:b7", "port={n}"),
		oneOf("git", "git@github.com:x/y", "git@github.com:{w}/{w}.git", "git clone git@gitlab.com:{w}/{w}.git", "ssh://git@github.com/{w}/{w}", "https://github.com/{w}/{w}/pull/{n}", "https://github.com/{w}/{w}@v1.2.3", "index 83db48f..bf269f4 100644",
			"@@ -1,7 +1,7 @@", "go get github.com/{w}/{w}@v0.0.0-20260701123456-abcdef123456", "golang.org/x/mod@v0.17.0/modfile/read.go:12", "npm i @types/node@20.1.0", "refs/heads/{w}", "https://proxy.golang.org:443/github.com/x/@v/list"),
		oneOf("versions", "go1.22.4", "v1.2.3", "1.2.3-rc.1+build.5", "version 1.2.3.4", "Chrome/120.0.0.0 Safari/537.36", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0", "openssl 3.0.13", "postgres 15.7 (Debian 15.7-0+deb12u1)",
			"libc6_2.36-9+deb12u7_amd64.deb", "app-1.2.3.4.tar.gz", "kernel 6.1.0-21-amd64", "requests==2.32.3", "assembly version=4.0.30319.42000"),
		oneOf("code", "token := next()", "token := parser.Next()", "token, err := lexer.Next()", "if token == \"\" {", "password := os.Getenv(\"PW\")", "password = r.FormValue(\"password\")", "secret: cfg.Secret,", "Token: token,", "return token, nil",
			"t.Errorf(\"password = %q\", p)", "func (t *Token) String() string", "password=password)", "login(user=user, password=given)", "api_key = config[\"api_key\"]", "const secret = process.env.SECRET", "token = tokens[i+1]", "for token in tokens:",
			"self.token = token", "password: string;", "secret?: string", "passwordHash, err := bcrypt.GenerateFromPassword(b, 12)", "type Token struct { Kind int }", "std::vector<int> v2;", "Foo::Bar2::new(x)", "x.password != y.password",
			"DB_PASSWORD=$DB_PASSWORD", "DB_PASSWORD=${DB_PASSWORD:-}", "password: {{ .Values.password }}", "password: <your password>", "token=<token>", "password=********", "password=%s", "tokenizer=gpt2-medium", "secretary: bob{n}", "passwordless=true1",
			"key := m[\"key\"]", "map[string]int{\"a\": 1}", "case token.IDENT:", "err != nil && token != nil", "sync.Mutex{}", "ctx, cancel := context.WithTimeout(ctx, 5*time.Second)"),
		oneOf("SQL", "SELECT password FROM users WHERE token = $1", "INSERT INTO users (name, password) VALUES ($1, $2)", "WHERE token = ? AND id = {n}", "password VARCHAR(255) NOT NULL", "ALTER TABLE t ADD COLUMN token text", "update job set token = :token where id = :id",
			"duplicate key value violates unique constraint \"job_pkey\"", "Key (id)=({n}) already exists.", "syntax error at or near \"token\"", "relation \"secret\" does not exist", "SELECT count(*) FROM job WHERE state = 'ready'", "create role app login password null",
			"column \"password\" of relation \"users\" does not exist", "pq: password authentication failed for user \"app\"", "FATAL: password authentication failed for user \"app\" (SQLSTATE 28P01)", "ERROR 1045 (28000): Access denied for user 'app'@'localhost' (using password: YES)"),
		oneOf("errors", "unexpected token: x{n}", "unexpected token \"}\" at line {n}", "invalid token", "token expired", "token: expired", "password: must be at least 8 characters", "password is required", "secret \"db-creds\" not found", "missing api key",
			"the token was rejected by the server", "use --token to pass a token", "flag needs an argument: --password", "--api-key is required", "authorization: denied", "Authorization failed for user {n}", "cookie: not set", "http: named cookie not present",
			"basic understanding of authentication", "bearer of bad news", "credentials: not found", "context deadline exceeded", "connection refused", "dial tcp 127.0.0.1:5432: connect: connection refused", "dial tcp [::1]:5432: connect: connection refused",
			"lookup db on 127.0.0.53:53: no such host", "EOF", "exit status 1", "signal: killed", "tls: first record does not look like a TLS handshake", "x509: certificate signed by unknown authority", "json: cannot unmarshal string into Go value of type int",
			"strconv.Atoi: parsing \"x{n}\": invalid syntax", "rate limit exceeded, retry after 30 s", "no such queue: {w}"),
		oneOf("tests", "--- PASS: TestToken (0.00s)", "--- FAIL: TestPasswordIsScrubbed/short_{n} (1.23s)", "ok  \tgithub.com/{w}/{w}\t0.123s\tcoverage: 81.2% of statements", "PASS", "pass=12 fail=0 skip=3", "    main_test.go:42: got 3, want 4", "=== RUN   TestSecretKey",
			"BenchmarkScrub-8   \t    1000\t   1234567 ns/op\t 12.34 MB/s", "panic: runtime error: index out of range [5] with length 3", "tests: 120 passed, 3 failed", "bypass=x{n}", "compass:north{n}", "password='' user=x"),
		oneOf("stacks", "goroutine 17 [running]:\nmain.(*server).handle(0xc000123456, {0x7f3a12345678, 0xc})\n\t/app/server.go:{n} +0x1d", "created by net/http.(*Server).Serve in goroutine 1\n\t/usr/local/go/src/net/http/server.go:3086 +0x5cb",
			"Traceback (most recent call last):\n  File \"/app/main.py\", line {n}, in <module>", "    at Object.<anonymous> (/app/index.js:{n}:15)", "\tat com.example.Token.parse(Token.java:{n})", "token=0xc000123456"),
		oneOf("prose", "The disk was full, so the task stopped.", "a risk-based-authentication-of-users", "sk-learn-and-other-libraries", "we asked {n} people on 2026-07-01", "10@5 or x@y", "see section 1.2.3.4 of the manual", "{w} {w} {w} at {w}", "user@localhost",
			"the password must be changed", "his secret was safe", "keys and tokens were counted", "half of the tokens are used", "a key: value pair", "Visit https://example.com/docs?id=42#top for more", "npm_config_registry", "secret_santa_organisers", "image logo@2x.png", "unit getty@tty1.service"),
		oneOf("config", "log_level: debug", "password_policy: strong8chars", "token_type=bearer", "token_endpoint: https://example.com/oauth/token", "auth=oauth2", "auth: basic", "key: {w}", "timeout=30s retries=5", "secret: true", "session_timeout=3600s", "state=running", "hash=sha256",
			"signature: valid", "signing_key_id=key-{n}", "private_key_path=/etc/ssl/x.pem", "api_key_header=X-Api-Key", "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "content-type: application/json; charset=utf-8", "cache-control: max-age={n}", "accept-encoding: gzip, deflate",
			"https://example.com:8443/x?page={n}&sort=name", "queue=mail tenant=t{n} key=k{n} attempt=2", "rate=500/5s burst=20", "0.0.0.0:8080", "127.0.0.1:5432", "255.255.255.0"),
	}
}

package scrub_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// secretForm is a text around a secret. In the pattern, {} stands for the secret.
type secretForm struct {
	family  string
	pattern string
	values  []value
}

// value makes secrets of one kind.
type value struct {
	name string
	make func(r *rand.Rand) string
}

const (
	lower = "abcdefghijklmnopqrstuvwxyz"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digit = "0123456789"
	alnum = lower + upper + digit
	hexes = "0123456789abcdef"
)

func drawn(r *rand.Rand, letters string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return string(text)
}

// key makes a key with letters of both cases and digits.
func key(r *rand.Rand, n int) string {
	return drawn(r, lower, 1) + drawn(r, alnum, n-4) + drawn(r, digit, 2) + drawn(r, upper, 1)
}

func keyOf(n int) value {
	return value{fmt.Sprint("key", n), func(r *rand.Rand) string { return key(r, n) }}
}

func prefixedBy(prefix, letters string, n int) value {
	return value{prefix, func(r *rand.Rand) string {
		return prefix + drawn(r, letters, n-3) + drawn(r, digit, 2) + drawn(r, letters[:6], 1)
	}}
}

var (
	short = value{"short", func(r *rand.Rand) string { return drawn(r, lower, 3+r.IntN(4)) + drawn(r, digit, 2+r.IntN(3)) }}
	signs = value{"signs", func(r *rand.Rand) string {
		return drawn(r, lower, 4) + drawn(r, "!%_-+*.", 1) + drawn(r, digit, 4) + drawn(r, upper, 4)
	}}
	long    = value{"long", func(r *rand.Rand) string { return key(r, 220+r.IntN(200)) }}
	words   = value{"words", func(r *rand.Rand) string { return drawn(r, lower, 9+r.IntN(9)) }}
	slashed = value{"backslashes", func(r *rand.Rand) string { return key(r, 8) + `\` + key(r, 8) + `\` + drawn(r, digit, 5) }}
	spaced  = value{"blanks", func(r *rand.Rand) string { return key(r, 6) + " " + key(r, 7) }}
	hexed   = value{"hex", func(r *rand.Rand) string { return drawn(r, hexes, 64) }}
	based   = value{"base64", func(r *rand.Rand) string {
		raw := make([]byte, 30+r.IntN(20))
		for i := range raw {
			raw[i] = byte(r.IntN(256))
		}
		return base64.StdEncoding.EncodeToString(raw)
	}}
	percent = value{"percent", func(r *rand.Rand) string { return key(r, 20) + "%2B" + key(r, 10) + "%3D" }}
)

func secretForms() []secretForm {
	var all []secretForm
	add := func(family string, values []value, patterns ...string) {
		for _, pattern := range patterns {
			all = append(all, secretForm{family, pattern, values})
		}
	}
	connectionForms(add)
	assignmentForms(add)
	fieldForms(add)
	requestForms(add)
	vendorForms(add)
	personalForms(add)
	return all
}

type adder func(family string, values []value, patterns ...string)

func connectionForms(add adder) {
	add("url", []value{short, words, signs, keyOf(24), long, percent},
		"postgres://app:{}@db.internal:5432/jobs?sslmode=disable", "mysql://root:{}@10.1.2.3/shop", "redis://:{}@cache:6379/0", "rediss://default:{}@cache.example.com:6380",
		"mongodb+srv://app:{}@cluster0.abcde.mongodb.net/test?retryWrites=true", "amqp://guest:{}@rabbit:5672/vhost", "https://bob:{}@git.example.com/x/y.git",
		"nats://svc:{}@n1:4222,n2:4222", "sqlserver://sa:{}@mssql:1433?database=x", "ftp://u:{}@files.example.com/a", "clickhouse://default:{}@ch:9000/db",
		"jdbc:postgresql://db:5432/x?user=app&password={}&ssl=true", "ldap://cn=admin:{}@ldap:389", "smtp://mailer:{}@smtp.example.com:587", "http://proxy:{}@proxy.local:3128",
		`parse "postgres://app:{}@db:54x32/jobs": invalid port ":54x32" after host`, `Get "https://bob:{}@example.com/x": dial tcp: lookup example.com: no such host`)
	add("driver", []value{short, signs, keyOf(24), words},
		"app:{}@tcp(db.internal:3306)/shop?parseTime=true", "root:{}@tcp(127.0.0.1:3306)/", "root:{}@/shop", "app:{}@unix(/run/mysqld/mysqld.sock)/shop",
		"host=db user=app password={} dbname=jobs sslmode=disable", "host=db port=5432 password='{}' user=app", "Server=db;Database=x;User Id=sa;Password={};Encrypt=true",
		"Driver={ODBC Driver 18};Server=db;UID=sa;PWD={};", "Data Source=db;User ID=app;Pwd={}", "jdbc:sqlserver://db:1433;user=sa;password={};encrypt=true",
		"jdbc:oracle:thin:scott/{}@db:1521/orcl", "scott/{}@//db:1521/orcl", "scott/{}@db:1521/orcl", "user=\"scott\" password=\"{}\" connectString=\"db:1521/orcl\"",
		"app:{}@db.internal:5432/jobs", "sasl.username=app sasl.password={}", "sasl.jaas.config=org.apache.kafka.Plain required username=\"a\" password=\"{}\";",
		"failed to connect to `user=app password={} host=db database=x`")
	add("azure", []value{based},
		"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core.windows.net",
		"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={};EntityPath=q", "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey={};")
}

func assignmentForms(add adder) {
	add("key=value", []value{short, words, signs, keyOf(20), long, slashed},
		"password={}", "DB_PASSWORD={}", "export PGPASSWORD={}", "db.password={}", "client_secret={}", "API_KEY={}", "secret={}", "SECRET_KEY_BASE={}", "access_token={}",
		"refresh_token={} user=bob", "token={}", "user=bob passwd={} host=x", "pwd={};", "apikey={}", "ENCRYPTION_KEY={}", "aws_session_token={}", "AUTH_TOKEN={}", "REDIS_PASSWORD={}", "webhook_secret={}")
	add("key: value", []value{short, signs, keyOf(20), long},
		"password: {}", "token: {}", "api-key: {}", "client_secret: {}", "secret :  {}", "the password is {}", "token was {}", "X-Api-Key: {}", "X-Auth-Token: {}", "db_password = {}",
		"access_key := {}", "passphrase -> password: {}", "Password:{}", "PRIVATE-TOKEN: {}")
	add("quoted", []value{short, words, signs, keyOf(20), long, spaced},
		`password="{}"`, `password = "{}"`, `password: '{}'`, `DB_PASSWORD='{}'`, "password=`{}`", `"password": "{}"`, `"password":"{}"`, `'password': '{}'`, `"dbPassword" : "{}"`,
		`:password => "{}"`, `config["password"] = "{}"`, `password: str = "{}"`, `passwd := "{}"`)
	add("quoted key", []value{keyOf(20), keyOf(40), long, hexed},
		`"apiKey": "{}"`, `"client_secret":"{}"`, `"access_token":"{}","token_type":"bearer"`, `"refreshToken": "{}"`, `secret = "{}"`, `token: '{}'`, `"privateKey":"{}"`,
		`const token = "{}";`, `"tokens":["{}"]`, `{"name":"API_TOKEN","value":"{}"}`, `name: DB_PASSWORD, value: "{}"`, `"auth":"{}"`, `"secretAccessKey":"{}"`, `"sessionToken": "{}"`)
	add("doubled quotes", []value{{"doubled", func(r *rand.Rand) string { return key(r, 8) + "''" + key(r, 8) }}}, "password='{}'", "password = '{}' x", "PASSWORD '{}'", "IDENTIFIED BY '{}';")
	add("backslashes", []value{slashed}, `password="{}"`, `password='{}'`, `"password":"{}"`, `secret: "{}"`, `token="{}"`, "password={}")
	add("flags", []value{short, keyOf(20), keyOf(40), long},
		"app --password {} --verbose", "app --api-key {}", "app --token {} run", "app --token={}", "app -password {}", "app --client-secret={} x", "app --secret-key '{}'", `app --api-key "{}"`,
		`["app","--token","{}"]`, "curl -u admin:{} https://example.com", "curl --user admin:{} https://example.com", "exec [app --password {}] failed",
		"sshpass -p {} ssh app@host", "machine api.example.com login bob password {}")
	add("SQL", []value{short, words, signs, keyOf(20)},
		"ALTER ROLE app PASSWORD '{}'", "create role app login password '{}';", "CREATE USER app IDENTIFIED BY '{}'", "ALTER USER 'a'@'%' IDENTIFIED WITH mysql_native_password BY '{}';",
		"CREATE LOGIN app WITH PASSWORD = '{}'", "ALTER USER app WITH ENCRYPTED PASSWORD '{}' VALID UNTIL 'infinity'", "CREATE USER MAPPING FOR x SERVER y OPTIONS (user 'a', password '{}')",
		"SET PASSWORD FOR 'bob'@'%' = PASSWORD('{}')", "update users set password = '{}' where id = 7", "GRANT ALL ON *.* TO 'a'@'h' IDENTIFIED BY '{}' WITH GRANT OPTION")
}

func fieldForms(add adder) {
	add("JSON", []value{short, signs, keyOf(30), long},
		`{"user":"app","password":"{}","n":3}`, `{ "db" : { "password" : "{}" } }`, `{"auth":{"api_key":"{}"}}`, `[{"secret":"{}"}]`, `{"accessToken":"{}"}`)
	add("YAML and TOML", []value{short, signs, keyOf(30), words},
		"db:\n  user: app\n  password: {}\n  port: 5432", "- name: x\n  password: \"{}\"", "[db]\npassword = \"{}\"\nport = 1", "[db]\npassword = '{}'", "password={}\n", "smtp:\n  smtp_password: '{}'\n")
	add("XML", []value{short, signs, keyOf(30), words},
		"<password>{}</password>", "<db><user>app</user><Password>{}</Password></db>", "<ns:password>{}</ns:password>", `<add name="x" password="{}"/>`,
		`<add key="DbPassword" value="{}"/>`, "<password><![CDATA[{}]]></password>", `<property name="password" value="{}"/>`)
	add("XML key", []value{keyOf(30), hexed}, "<apiKey>{}</apiKey>", "<ns:clientSecret>{}</ns:clientSecret>", "<token>{}</token>", `<add key="ApiKey" value="{}" />`)
	add("Go value", []value{short, keyOf(20), words}, "{User:app Password:{} Host:db}", "map[password:{} user:app]", "&{Name:x Password:{}}", `main.Config{User:"app", Password:"{}"}`)
	add("Go key", []value{keyOf(20), keyOf(40)}, "{ID:3 Token:{}}", "map[Authorization:[Bearer {}] Accept:[*/*]]", "map[X-Api-Key:[{}]]", "map[Cookie:[session={}]]", "{APIKey:{} Retries:3}")
}

func requestForms(add adder) {
	add("query", []value{keyOf(24), keyOf(40), hexed, percent},
		"https://api.example.com/v1?key={}", "https://api.example.com/v1?q=x&key={}&n=3", "https://x.blob.core.windows.net/c/b?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig={}",
		"https://cdn.example.com/f?Expires=1700000000&Signature={}&Key-Pair-Id=K1", "https://app.example.com/callback?code={}&state=xyz", "/oauth/callback?code={}",
		"https://x.s3.amazonaws.com/k?X-Amz-Date=20260701T000000Z&X-Amz-Signature={}", "https://storage.googleapis.com/b/o?X-Goog-Signature={}", "GET /feed?token={} HTTP/1.1",
		"https://example.com/?access_token={}", "https://example.com/#access_token={}&token_type=bearer", "https://example.com/reset?reset_token={}", "https://example.com/?apikey={}",
		"https://example.com/x?auth={}", "https://example.com/x?client_secret={}&grant_type=x", "grant_type=authorization_code&code={}&redirect_uri=https%3A%2F%2Fx", "https://example.com/?X-Amz-Security-Token={}",
		"https://example.com/x?api_key={}", "https://example.com/x?session={}", `Get "https://example.com/x?key={}": context deadline exceeded`, "redirect=https%3A%2F%2Fx%3Ftoken%3D{}",
		"https://example.com/x?a=1\\u0026sig={}", "https://example.com/x?a=1&amp;sig={}")
	add("headers", []value{keyOf(24), keyOf(60), long},
		"Authorization: Bearer {}", "Authorization: Basic {}", "authorization: token {}", "Authorization: {}", "Proxy-Authorization: Basic {}", `"Authorization":"Bearer {}"`, `-H "Authorization: Bearer {}"`,
		`-H 'X-Api-Key: {}'`, "bearer {}", "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260701/eu/s3/aws4_request, SignedHeaders=host, Signature={}", "Authorization=Bearer {}", "Authorization: ApiKey {}")
	add("cookies", []value{keyOf(24), keyOf(40), hexed},
		"Cookie: sid={}", "Cookie: theme=dark; session={}; lang=en", "Set-Cookie: session={}; Path=/; HttpOnly", "cookie: _ga=GA1.2.3; sessionid={}", "PHPSESSID={}", "JSESSIONID={}", "connect.sid=s%3A{}",
		"_app_session={}", `"cookie":"sid={}"`, "laravel_session={}; path=/", "sessionid={}", `-H "Cookie: sid={}"`, "ASP.NET_SessionId={}", "remember_token={}")
	add("webhooks", []value{keyOf(24), keyOf(35)},
		"https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{}", "https://discord.com/api/webhooks/123456789012345678/{}", "https://discordapp.com/api/webhooks/123456789012345678/{}",
		"https://x.webhook.office.com/webhookb2/11111111-2222-3333-4444-555555555555@66666666-7777-8888-9999-000000000000/IncomingWebhook/{}/77777777-1111-2222-3333-444444444444",
		"https://outlook.office.com/webhook/{}/IncomingWebhook/x", "https://api.telegram.org/bot123456789:AA{}/sendMessage", "https://hooks.zapier.com/hooks/catch/123456/{}/",
		"https://chat.googleapis.com/v1/spaces/AAA/messages?key={}&token=x", "https://prod-1.westeurope.logic.azure.com:443/workflows/1/triggers/manual/paths/invoke?api-version=1&sig={}",
		`Post "https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{}": context deadline exceeded`, "https://maker.ifttt.com/trigger/x/with/key/{}")
}

func vendorForms(add adder) {
	add("vendors", []value{
		prefixedBy("AKI"+"A", upper+"234567", 16), prefixedBy("ASI"+"A", upper+"234567", 16), prefixedBy("GOC"+"SPX-", alnum+"_-", 28), prefixedBy("AI"+"za", alnum+"_-", 35), prefixedBy("ya29"+".", alnum+"_-", 90),
		prefixedBy("ATB"+"B", alnum, 32), prefixedBy("ATAT"+"T3", alnum+"_-", 180), prefixedBy("NRA"+"K-", upper+digit, 27), prefixedBy("LTA"+"I5t", alnum, 20), prefixedBy("LTA"+"I", alnum, 16),
		prefixedBy("gh"+"p_", alnum, 36), prefixedBy("gh"+"s_", alnum, 36), prefixedBy("github_"+"pat_", alnum+"_", 82), prefixedBy("glp"+"at-", alnum+"_-", 20), prefixedBy("glr"+"t-", alnum+"_-", 20),
		prefixedBy("gld"+"t-", alnum+"_-", 20), prefixedBy("xox"+"b-123456789012-123456789012-", alnum, 24), prefixedBy("xox"+"p-123456789012-", alnum, 60), prefixedBy("xap"+"p-1-A0-", alnum, 64),
		prefixedBy("sk_"+"live_", alnum, 24), prefixedBy("rk_"+"live_", alnum, 24), prefixedBy("sk_"+"test_", alnum, 99), prefixedBy("whs"+"ec_", alnum, 32), prefixedBy("sk-"+"proj-", alnum+"_-", 100),
		prefixedBy("sk-"+"ant-api03-", alnum+"_-", 95), prefixedBy("S"+"G.", alnum+"_-", 22), prefixedBy("np"+"m_", alnum, 36), prefixedBy("pyp"+"i-AgEIcHlwaS5vcmc", alnum+"_-", 80), prefixedBy("h"+"f_", alnum, 34),
		prefixedBy("shp"+"at_", hexes, 32), prefixedBy("dop"+"_v1_", hexes, 64), prefixedBy("dckr"+"_pat_", alnum+"_-", 27), prefixedBy("sq0"+"csp-", alnum+"_-", 43), prefixedBy("lin_"+"api_", alnum, 40),
		prefixedBy("hv"+"s.", alnum+"_-", 90), prefixedBy("hv"+"b.", alnum+"_-", 140), prefixedBy("dap"+"i", hexes, 32), prefixedBy("glsa"+"_", alnum, 32), prefixedBy("PMA"+"K-", hexes, 24), prefixedBy("rubygems"+"_", hexes, 48),
		prefixedBy("fig"+"d_", alnum+"_-", 40), prefixedBy("nvap"+"i-", alnum+"_-", 64), prefixedBy("gs"+"k_", alnum, 52), prefixedBy("pul"+"-", hexes, 40), prefixedBy("sbp"+"_", hexes, 40),
		prefixedBy("sntry"+"u_", hexes, 64), prefixedBy("123456789:"+"AA", alnum+"_-", 33), prefixedBy("ts"+"key-auth-", alnum, 30), prefixedBy("dp."+"pt.", alnum, 43), prefixedBy("xkey"+"sib-", hexes, 64),
	}, "{}", "invalid key {}", "key {} was refused", "key={}", "https://{}@example.com/x", `"{}"`)
	add("JWT", []value{{"jwt", func(r *rand.Rand) string {
		return "eyJ" + key(r, 17) + "." + "eyJ" + key(r, 30+r.IntN(300)) + "." + key(r, 43)
	}}}, "{}", "token {} expired", "Bearer {}", `{"jwt":"{}"}`, "https://x/?id_token={}")
	add("PEM", []value{{"pem", func(r *rand.Rand) string {
		return key(r, 64) + "\n" + key(r, 64) + "\n" + key(r, 20+r.IntN(900))
	}}}, "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
		"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{}\n-----END EC PRIVATE KEY-----")
	add("AWS secret", []value{{"aws", func(r *rand.Rand) string { return key(r, 19) + "/" + key(r, 20) }}}, "aws_secret_access_key={}", "AWS_SECRET_ACCESS_KEY: {}", `aws secret "{}"`, `"secretAccessKey":"{}"`)
}

func personalForms(add adder) {
	ip := value{"ipv4", func(r *rand.Rand) string {
		return fmt.Sprintf("%d.%d.%d.%d", 1+r.IntN(126), 100+r.IntN(156), 10+r.IntN(246), 10+r.IntN(246))
	}}
	add("network", []value{ip}, "dial tcp {}:5432: connect: connection refused", "read tcp 127.0.0.1:51234->{}:443: read: connection reset by peer", "write tcp {}:34567->127.0.0.1:443: write: broken pipe",
		"lookup db on {}:53: no such host", "dial tcp {}:443: i/o timeout", "dial udp {}:53: network is unreachable", "http://{}:8080/x", "listen tcp {}:80: bind: permission denied",
		`Get "http://{}/healthz": EOF`, "host={}", "client: {}", "{}:22", "x-forwarded-for: {}, 127.0.0.1", "connect to db/{}:5432 failed")
	add("network", []value{{"ipv6", func(r *rand.Rand) string {
		return fmt.Sprintf("2001:db8:%x::%x:%x", 4096+r.IntN(60000), 4096+r.IntN(60000), 4096+r.IntN(60000))
	}}},
		"dial tcp [{}]:5432: connect: connection refused", "from {}", "[{}]:443", "http://[{}]/x", "peer {}%eth0 gone")
	add("email", []value{{"email", func(r *rand.Rand) string {
		return drawn(r, lower, 5) + "." + drawn(r, lower, 6) + "@" + drawn(r, lower, 8) + ".example." + drawn(r, lower, 2)
	}}}, "{}", "user {} not found", "<{}>", "mailto:{}", "user={}", `{"email":"{}"}`, "login of {} failed", "https://x.test/?user={}")
	for _, sep := range []string{"", " ", "-", ".", "\t", "  ", "\u00a0", "\u2009", "\u202f", "\u2011", "\u2013", "%20", "&nbsp;"} {
		add("card", []value{{"card" + sep, func(r *rand.Rand) string { return strings.Join(fours(luhn(r)), sep) }}}, "{}", "card {} declined", "pan={}", `{"number":"{}"}`, "card: {}, exp 12/27")
	}
	add("phone", []value{
		{"phone", func(r *rand.Rand) string {
			return fmt.Sprintf("+%d %d %d", 1+r.IntN(98), 100+r.IntN(899), 1000000+r.IntN(8999999))
		}},
		{"us", func(r *rand.Rand) string {
			return fmt.Sprintf("%d-%d-%04d", 200+r.IntN(799), 200+r.IntN(799), r.IntN(10000))
		}},
	}, "{}", "call {}", "tel:{}", "phone={}")
	add("ssn", []value{{"ssn", func(r *rand.Rand) string {
		return fmt.Sprintf("%03d-%02d-%04d", 100+r.IntN(500), 1+r.IntN(99), 1+r.IntN(9999))
	}}}, "{}", "ssn {}", `"ssn":"{}"`)
	add("iban", []value{{"iban", iban}, {"iban in fours", func(r *rand.Rand) string { return strings.Join(fours(iban(r)), " ") }}}, "{}", "account {} closed", "iban={}", `"iban":"{}"`)
	add("home", []value{{"name", func(r *rand.Rand) string { return drawn(r, lower, 6) }}}, "open /home/{}/app/config: permission denied", "/Users/{}/Library/x", `C:\Users\{}\AppData`, "file:///home/{}/x", "cd /home/{}")
}

// luhn makes a card number.
func luhn(r *rand.Rand) string {
	for {
		number := "4" + fmt.Sprintf("%015d", r.Int64N(1e15))
		sum := 0
		for i := range number {
			d := int(number[i] - '0')
			if i%2 == 0 {
				if d *= 2; d > 9 {
					d -= 9
				}
			}
			sum += d
		}
		if sum%10 == 0 {
			return number
		}
	}
}

// iban makes a German IBAN with its check digits.
func iban(r *rand.Rand) string {
	account := fmt.Sprintf("%018d", r.Int64N(1e18))
	rest := 0
	for _, c := range account + "131400" {
		rest = (rest*10 + int(c-'0')) % 97
	}
	return fmt.Sprintf("DE%02d%s", 98-rest, account)
}

func fours(text string) (parts []string) {
	for len(text) > 4 {
		parts, text = append(parts, text[:4]), text[4:]
	}
	return append(parts, text)
}

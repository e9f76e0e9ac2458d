// Beyond the usual: the one-way rule between the rooms, and integers only on the device.
import tseslint from "typescript-eslint"

/** Imports that a room may not make, by path pattern, with the reason. */
function room(files, forbidden) {
    return {
        files,
        rules: {
            "no-restricted-imports": [
                "error",
                {
                    patterns: forbidden.map(([regex, message]) => ({
                        regex,
                        message,
                    })),
                },
            ],
        },
    }
}

const arithmetic = ["*", "/", "%", "**"].flatMap(operator =>
    ["BinaryExpression", "AssignmentExpression"].map(node => ({
        selector:
            node === "BinaryExpression"
                ? `${node}[operator="${operator}"]`
                : `${node}[operator="${operator}="]`,
        message: "multiplying and dividing is core/int.ts's job",
    })),
)

const impure = [
    {
        selector:
            "MemberExpression[object.name='Date'], MemberExpression[object.name='Math'][property.name='random']",
        message: "time and randomness are parameters here",
    },
    {
        selector: "Literal[raw=/^[0-9]*\\.[0-9]/]",
        message: "integers only on the device",
    },
]

const copies = {
    selector:
        "VariableDeclarator[id.type='ObjectPattern'][init.type=/^(Identifier|ThisExpression)$/]",
    message: "costs the device a copy: const a = b.a",
}

export default tseslint.config(
    { ignores: ["node_modules", ".devicescript", "docs/api", "zz"] },
    ...tseslint.configs.recommended,
    {
        rules: {
            // The device has no `#private`, no `Promise` values, and often only `any`.
            "@typescript-eslint/no-explicit-any": "off",
            "@typescript-eslint/no-this-alias": "off",
            "@typescript-eslint/no-unused-vars": [
                "error",
                { argsIgnorePattern: "^_", caughtErrors: "none" },
            ],
            "no-empty": ["error", { allowEmptyCatch: true }],
            eqeqeq: ["error", "always", { null: "ignore" }],
            "prefer-const": ["error", { destructuring: "all" }],
        },
    },
    room(["src/core/**"], [["^(\\.\\./|@|node:)", "core imports only core"]]),
    room(
        ["src/mqtt/**"],
        [
            ["^(@|node:)", "mqtt imports only mqtt and core"],
            ["^\\.\\./(?!core/)", "mqtt imports only mqtt and core"],
        ],
    ),
    room(
        ["src/device/**"],
        [
            ["^node:", "device code runs on the device"],
            ["^\\.\\./(main|index)", "device does not know the program"],
            ["host/", "device does not know the host"],
        ],
    ),
    room(
        ["host/**"],
        [
            ["src/device", "host may import core and mqtt, never device"],
            ["@devicescript/(?!cli)", "host runs in Node"],
        ],
    ),
    {
        files: ["src/core/**"],
        ignores: ["src/core/int.ts"],
        rules: {
            "no-restricted-syntax": ["error", ...arithmetic, ...impure, copies],
        },
    },
    {
        files: ["src/core/int.ts", "src/mqtt/**"],
        rules: { "no-restricted-syntax": ["error", ...impure, copies] },
    },
    {
        files: ["src/*.ts", "src/device/**"],
        rules: { "no-restricted-syntax": ["error", copies] },
    },
)

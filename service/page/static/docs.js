// Swagger UI on this service's own document; the token entered under "Authorize" goes nowhere else.
window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  presets: [window.SwaggerUIBundle.presets.apis, window.SwaggerUIBundle.SwaggerUIStandalonePreset].filter(Boolean),
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
});

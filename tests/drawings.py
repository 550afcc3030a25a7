"""What a page's drawings have to hold, asked of the page itself in a browser."""

# Each text that does not contrast with what lies under its middle by 4.5, and each drawing that has
# no words for who cannot see it. A shape lies under a text if it was painted before it, there.
CONTRAST = r"""() => {
    const parsed = colour => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const over = ([r, g, b, a = 1], below) =>
        [r, g, b].map((part, i) => part * a + below[i] * (1 - a));
    const light = rgb => {
        const [r, g, b] = rgb.map(part => part / 255)
            .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
        const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
        return (bright + 0.05) / (dark + 0.05);
    };
    const ground = parsed(getComputedStyle(document.body).backgroundColor);
    const wrong = [];
    for (const drawing of document.querySelectorAll('.memlab-figure > svg')) {
        if (!drawing.getAttribute('aria-label') && !drawing.getAttribute('aria-labelledby'))
            wrong.push('a drawing without words');
        const painted = [];
        for (const part of drawing.querySelectorAll('rect, path, circle, text')) {
            if (part.closest('defs, clipPath')) continue;
            const style = getComputedStyle(part);
            if (part.tagName !== 'text') {
                if (style.fill.startsWith('rgb')) painted.push([part, style]);
                continue;
            }
            const box = part.getBBox();
            const middle = drawing.createSVGPoint();
            middle.x = box.x + box.width / 2;
            middle.y = box.y + box.height / 2;
            const layers = style.paintOrder.startsWith('stroke') ? [parsed(style.stroke)] : [];
            const solid = () => layers.length && (layers.at(-1)[3] ?? 1) === 1;
            for (let i = painted.length - 1; i >= 0 && !solid(); i--) {
                const [shape, { fill, fillOpacity }] = painted[i];
                if (!shape.isPointInFill(middle)) continue;
                const [r, g, b, a = 1] = parsed(fill);
                layers.push([r, g, b, a * fillOpacity]);
            }
            const below = layers.reduceRight((under, layer) => over(layer, under), ground);
            const found = contrast(parsed(style.fill), below);
            if (found < 4.5)
                wrong.push(`${part.textContent}: ${style.fill} on ${below.map(Math.round)}, ` +
                    found.toFixed(2));
        }
    }
    return wrong;
}"""

# Each drawing that does not follow the width of a phone's page, or whose words are too small there.
LEAST = 9  # pixels of a letter
NARROW = r"""least => [...document.querySelectorAll('.memlab-figure > svg[aria-label]')]
    .filter(drawing => drawing.checkVisibility() && !drawing.id)
    .flatMap(drawing => {
        const { width } = drawing.getBoundingClientRect(), box = drawing.parentElement;
        const wrong = [];
        if (box.scrollWidth > box.clientWidth) wrong.push('scrolls');
        const scale = width / drawing.viewBox.baseVal.width;
        const sizes = [...drawing.querySelectorAll('text')]
            .map(text => parseFloat(getComputedStyle(text).fontSize) * scale);
        const smallest = Math.min(...sizes);
        if (smallest < least) wrong.push(`letters of ${smallest.toFixed(1)} px`);
        return wrong.map(said => `${said}: ${drawing.getAttribute('aria-label').slice(0, 40)}`);
    })"""
